"""``evenscore score``: from embeddings to raw scores."""

from __future__ import annotations

from typing import Annotated

from evenscore.cli import options as opt
from evenscore.cli.norm_options import EnrollMap
from evenscore.cli.option_records import with_records
from evenscore.cli.options import Resume, ScaleChoices
from evenscore.cli.output import scored_output
from evenscore.cli.scorers import ScorerOption, scorer_of

__all__ = ["EXAMPLES", "score"]

EXAMPLES = """
evenscore score --enroll-embeddings x.npz --test-embeddings x.npz \\
    --trials dev.trials -o raw
evenscore score --enroll-embeddings e.npz --test-embeddings t.npz \\
    --scorer plda:model=plda.json -o out.npz
evenscore score --enroll-embeddings e.npz --test-embeddings t.npz \\
    --scorer cosine:transform=transform.json -o out.npz
evenscore score --enroll-embeddings x.npz --enroll-map spk2utt \\
    --test-embeddings x.npz --scorer cosine:center=c.npz -o out.npz
evenscore score --enroll-embeddings e.npz --test-embeddings t.npz \\
    --workers 2 -o out.zarr
"""


@with_records
def score(
    output: opt.Output,
    enroll_embeddings: Annotated[str, opt.file("Embeddings of the enrolments.")],
    test_embeddings: Annotated[str, opt.file("Embeddings of the tests; may be the same file.")],
    trials: Annotated[str | None, opt.file("Trials to score; without, every enrolment against every test.")] = None,
    scorer: ScorerOption = "cosine",
    enroll_map: EnrollMap = None,
    *,
    scale: ScaleChoices,
    resume: Resume = False,
    to_format: opt.ToFormat = None,
) -> None:
    """Score embeddings of enrolments against embeddings of tests.

    The output is a matrix, or the listed trials in their order and with their labels. 'evenscore normalize' takes
    embeddings, too, and normalizes their scores with a cohort. With workers or a memory limit, a matrix is never in
    memory: it is written to .zarr or .parquet chunk by chunk.
    """
    from evenscore.cli.inputs import EmbeddingFiles, write_scores_of

    lazy = scale.given or resume
    with scored_output(output, to_format, scale, lazy=lazy, resume=resume) as place:
        place.progress("reading", 0.0)
        files = EmbeddingFiles(enroll=enroll_embeddings, test=test_embeddings, enroll_map=enroll_map)
        write_scores_of(files, trials, place, scale if lazy else None, scorer=scorer_of(scorer, raw=False))
