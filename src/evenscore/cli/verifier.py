"""``evenscore verifier``: bundle scorer, cohort, norm and calibration in one file for a service."""

from __future__ import annotations

from typing import Annotated

from evenscore.cli import options as opt
from evenscore.cli.norm_options import CohortChoices, ModelFile, NormName, norm_settings
from evenscore.cli.option_records import with_records
from evenscore.cli.output import check_output, print_lines, progress_bar
from evenscore.cli.scorers import ScorerOption, scorer_of
from evenscore.errors import InputError

__all__ = ["EXAMPLES", "verifier"]

EXAMPLES = """
evenscore verifier --norm as:top_k=300 --cohort-embeddings c.npz \\
    --scorer cosine:center=c.npz --calibration cal.json -o verifier.npz
evenscore verifier --norm lgsm --model m.json --cohort-embeddings c.npz \\
    -o verifier.npz
evenscore score --scorer verifier:model=verifier.npz -o llrs \\
    --enroll-embeddings e.npz --test-embeddings t.npz --trials k
"""


@with_records
def verifier(
    output: opt.Output,
    cohort_embeddings: Annotated[
        str | None, opt.file("Embeddings of the cohort: of speakers who are in no trial.")
    ] = None,
    norm: Annotated[str, NormName] = "as",
    model: ModelFile = None,
    scorer: ScorerOption = "cosine",
    calibration: Annotated[
        str | None, opt.file("Calibration of normalized scores, kept by 'evenscore calibrate --save'.")
    ] = None,
    cohort_speakers: Annotated[str | None, opt.file("Map from id to speaker for the cohort.")] = None,
    *,
    members: CohortChoices,
) -> None:
    """Bundle scorer, cohort, norm and calibration in one file, for trials that come one by one.

    In Python, evenscore.files.load_verifier(FILE) makes of it an object that takes two vectors and returns a
    log-likelihood ratio, in microseconds and from many threads. To check it, score embeddings with
    --scorer verifier:model=FILE: the numbers are those of 'evenscore normalize' and 'evenscore calibrate'. --norm raw
    bundles a scorer and a calibration alone.
    """
    from evenscore.cli.inputs import EmbeddingFiles
    from evenscore.files import load_calibration, save_verifier
    from evenscore.online import Verifier

    check_output(output)
    with progress_bar() as progress:
        progress("reading", 0.0)
        method, settings = ("raw", {}) if norm == "raw" else norm_settings(norm, model)
        if (cohort_embeddings is None) != (method == "raw"):
            needs = "takes no cohort; leave out" if method == "raw" else "needs a cohort; give"
            raise InputError(f"the norm {method} {needs} --cohort-embeddings")
        cohort = None
        if cohort_embeddings is not None:
            files = EmbeddingFiles(enroll="", test="", cohort=cohort_embeddings, cohort_speakers=cohort_speakers)
            cohort = files.read_cohort(members)
        kept = None if calibration is None else load_calibration(calibration)
        progress("preparing", 0.5)
        made = Verifier(scorer_of(scorer), cohort=cohort, method=method, calibration=kept, **settings)
        save_verifier(made, output)
    if output != "-":
        end = "" if made.is_llr else "; it returns normalized scores, no LLRs: give --calibration for these"
        print_lines([f"{made!r}{end}"])
