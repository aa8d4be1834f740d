"""``python -m recipes.paper``: the paper's experiment, from recordings to its figure and tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore import EvenscoreError, FileError, InputError
from evenscore.cli.app import program
from evenscore.cli.output import print_lines, print_table, progress_bar

if TYPE_CHECKING:
    from recipes.paper.experiment import PaperResult

__all__ = ["APP", "EXAMPLES", "paper"]

EXAMPLES = """
python -m recipes.paper --corpus audiomnist --root AudioMNIST -o out/
python -m recipes.paper --corpus audiomnist --root A -o out/ \\
    --permutations 1 --shift gsm,noise:5
python -m recipes.paper --corpus rsr2015 --root R -o out/ \\
    --gender-dependent --train-sets background,development
python -m recipes.paper --corpus manifest --root m.csv -o out/ \\
    --enroll 1,2,3
"""

_MISSING = {"soundfile", "kaldi_native_fbank"}


def paper(
    corpus: Annotated[
        str, typer.Option("--corpus", metavar="NAME", help="audiomnist, rsr2015 (part I), or manifest: your own list.")
    ],
    root: Annotated[
        str,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Where the corpus is. For a manifest the file: CSV with the columns speaker, gender (m, f), phrase, "
            "session, path, and, if you like, set (background, development, evaluation).",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results.")],
    enroll: Annotated[
        str | None,
        typer.Option("--enroll", metavar="S,S,...", help="Sessions that enrol; all others are tests."),
    ] = None,
    permutations: Annotated[
        str | None,
        typer.Option(
            "--permutations",
            metavar="N",
            help="How many of the six ways to give the three sets of speakers their roles, or 'all'. The default is "
            "all, or 1 if the corpus has sets of its own.",
        ),
    ] = None,
    shift: Annotated[
        str | None,
        typer.Option(
            "--shift",
            metavar="S,S,...",
            help="Dataset shifts of the evaluation takes: telephone, noise:DB (white), speech-shaped:DB, babble:DB, "
            "mu-law, a-law, gsm, opus, mixed (one of the others for each take, or none); or 'none'. The default is "
            "telephone,gsm,noise:20,noise:10,noise:0,mixed.",
        ),
    ] = None,
    shift_side: Annotated[
        str, typer.Option("--shift-side", metavar="SIDE", help="What is shifted: test takes, or both sides' takes.")
    ] = "test",
    gaussians: Annotated[int | None, typer.Option("--gaussians", metavar="C", help="Of the background model.")] = None,
    rank: Annotated[int | None, typer.Option("--rank", metavar="R", help="Number of eigenchannels.")] = None,
    gender_dependent: Annotated[
        bool, typer.Option("--gender-dependent", help="Train a recognizer for each gender, as the paper did.")
    ] = False,
    train_sets: Annotated[
        str,
        typer.Option(
            "--train-sets",
            metavar="S,...",
            help="Whose speech trains the recognizer: background, or background,development as in the paper; then the "
            "development scores are not those of new speakers.",
        ),
    ] = "background",
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", metavar="N", help="Draws of the speakers for the intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of all that is drawn at random.")] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="Processes for features; the default is one per core.")
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache", metavar="DIR", help="Where features are kept for the next run. Default: OUTPUT/features."
        ),
    ] = None,
    save_scores: Annotated[
        str | None,
        typer.Option("--save-scores", metavar="DIR", help="Write the scores of the first split, as npz files, too."),
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out files that cannot be used, and list them.")
    ] = False,
) -> None:
    """Run the paper's experiment: recordings in, its figure and table out.

    A text-dependent GMM-UBM recognizer is trained on background speakers (and development speakers, if you like), the
    score models on the scores of development speakers, one matrix per phrase, and evaluation speakers are scored with
    the development sets as cohorts. Systems: raw, ZT, the score model with 0, 1 and 2 dimensions, S with and without
    its division, AS; per gender and pooled. Then evaluation takes are spoilt while all models stay as they are. The
    output directory gets index.md (start there), results.json, tables and figures. Needs evenscore[speech,plot].
    """
    run, options = _prepared(
        permutations=permutations, shift=shift, shift_side=shift_side, seed=seed, replicates=bootstrap,
        recognizer={"n_gaussians": gaussians, "rank": rank, "gender_dependent": gender_dependent, "seed": seed,
                    "train_sets": _listed(train_sets)},
    )  # fmt: skip
    sessions = None if enroll is None else _listed(enroll)
    if corpus == "manifest" and sessions is None:
        raise InputError("a manifest does not say which sessions enrol; give them with --enroll, such as 1,2,3")
    folder = _directory(output)
    target = None if save_scores is None else _directory(save_scores)
    from recipes.text_dependent import read_corpus

    with progress_bar() as progress:
        progress("looking for recordings", 0.0)
        found = read_corpus(corpus, root, enroll_sessions=sessions, skip_unreadable=skip_unreadable)
        result = run(
            found,
            options,
            name=corpus,
            cache=folder / "features" if cache is None else cache,
            jobs=jobs or os.cpu_count() or 1,
            skip_unreadable=skip_unreadable,
            progress=progress,
        )
    _write(result, folder)
    if target is not None:
        _write_scores(result, target)
    _print(result, folder)


APP = program("paper", paper, EXAMPLES)


def _prepared(*, permutations: str | None, shift: str | None, recognizer: dict[str, Any], **options: Any) -> Any:
    """Return the function that runs, and its options, which are checked before anything is read."""
    from evenscore.plot.style import require_matplotlib

    try:
        from recipes.paper.experiment import PaperOptions, run_paper
        from recipes.text_dependent import RecognizerOptions
    except ModuleNotFoundError as error:
        if error.name not in _MISSING:
            raise
        raise EvenscoreError(
            f"speech needs the package {error.name}; install it: pip install 'evenscore[speech,plot]'"
        ) from None
    require_matplotlib()  # better now than after the work
    chosen = RecognizerOptions(**{name: value for name, value in recognizer.items() if value is not None})
    if shift is not None:
        options["shifts"] = () if shift.strip() == "none" else _listed(shift)
    return run_paper, PaperOptions(permutations=_number(permutations), recognizer=chosen, **options)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _number(permutations: str | None) -> int | None:
    if permutations is None:
        return None
    if permutations == "all":
        return 6
    try:
        return int(permutations)
    except ValueError:
        raise InputError(f"--permutations is {permutations!r}, but must be a number from 1 to 6, or all") from None


def _directory(name: str) -> Path:
    """Return a directory that can be written to; better now than after the work."""
    from evenscore.files.streams import writing

    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise FileError(name, "a file of this name exists, but a directory is needed; choose another name")
    with writing(name):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(name, "no permission to write there; choose another place")
    return folder


def _write(result: PaperResult, folder: Path) -> None:
    """Write all files; the page that shows them last, so that it is never there without them."""
    from evenscore.files.streams import atomic_output
    from evenscore.plot import save_figure
    from recipes.paper.output import paper_figures, paper_texts

    figures = paper_figures(result)
    for name, figure in figures.items():
        save_figure(figure, folder / name)
    texts = paper_texts(result, figures)
    for name in sorted(texts, key=lambda name: (name == "index.md", name)):
        with atomic_output(folder / name) as stream:
            stream.write(texts[name].encode())


def _write_scores(result: PaperResult, folder: Path) -> None:
    from evenscore.files import save_score_set
    from recipes.paper.output import single_precision

    save_score_set(single_precision(result.scores), folder)


def _print(result: PaperResult, folder: Path) -> None:
    from recipes.paper.page import agreement
    from recipes.paper.tables import eer_table

    table = eer_table(result.figures["summary"]["per-gender"])
    print_table(table[1:], header=table[0], numbers=True)
    print_lines(["", *agreement(result.figures), ""])
    stages = [[name, f"{seconds:.1f} s"] for name, seconds in result.seconds.items()]
    print_table([*stages, ["all", f"{sum(result.seconds.values()):.1f} s"]], header=["stage", "time"], numbers=True)
    print_lines(["", f"wrote {folder / 'index.md'}"])
