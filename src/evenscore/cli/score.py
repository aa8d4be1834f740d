"""``evenscore score``: embeddings in, raw scores out."""

from __future__ import annotations

from typing import Annotated

from evenscore.cli.options import (
    EnrollMap,
    MemoryLimit,
    Output,
    Scheduler,
    ScorerOption,
    ToFormat,
    Workers,
    file_option,
)

__all__ = ["EXAMPLES", "score"]

EXAMPLES = """
evenscore score --enroll-embeddings x --test-embeddings x --trials k -o raw
evenscore score --enroll-embeddings x.scp --test-embeddings x.scp \\
    --scorer cosine:center=cohort.scp -o out.npz
evenscore score --enroll-embeddings e.npz --test-embeddings t.npz \\
    --scorer plda:model=plda.json -o out.npz
evenscore score --enroll-embeddings x.npz --enroll-map spk2utt \\
    --test-embeddings x.npz -o out.zarr
"""


def score(
    output: Output,
    enroll_embeddings: Annotated[str, file_option("Embeddings of the enrolments.")],
    test_embeddings: Annotated[str, file_option("Embeddings of the tests; may be the same file.")],
    trials: Annotated[str | None, file_option("Trials to score; by default all enrolments against all tests.")] = None,
    scorer: ScorerOption = "cosine",
    enroll_map: EnrollMap = None,
    to_format: ToFormat = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Score embeddings of enrolments against embeddings of tests.

    The output is a matrix, or the listed trials in their order and with their labels. An utterance has no score against
    itself. A matrix for a zarr store is computed and written in chunks, so that it may be larger than memory.
    """
    from evenscore.cli.inputs import labelled_format, read_scorer, read_sides, refuse_overflow
    from evenscore.files import output_format, read_trials, write
    from evenscore.large import cluster
    from evenscore.scoring import embedding_blocks

    lazy = output_format(output, "scores", to_format).name == "zarr" and trials is None
    how = read_scorer(scorer)
    with cluster(workers, scheduler, memory_limit):
        enroll, test = read_sides(enroll_embeddings, test_embeddings, enroll_map, how)
        listed = None if trials is None else read_trials(trials)
        table = embedding_blocks(enroll, test, None, listed, scorer=how, lazy=lazy).trials
        write(refuse_overflow(table), output, format=labelled_format(table, output, to_format))
