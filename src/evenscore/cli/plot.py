"""``evenscore plot``: figures of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.cli.figures import FigureFile
    from evenscore.cli.labelled import LabelSources
    from evenscore.metrics import OperatingPoint
    from evenscore.tables import TrialList

__all__ = ["COMMANDS", "EXAMPLES", "GROUP"]

GROUP = "Draw figures of labelled scores."

EXAMPLES = """
evenscore plot det a.scores b.scores --key dev.trials -o det.svg
evenscore plot bayes llr.scores --key dev.trials -o bayes.pdf
evenscore plot det --help
"""

_DET = """
evenscore plot det dev.scores --key dev.trials -o det.svg
evenscore plot det a b --name raw --name AS-norm --key k -o det.pdf
evenscore plot det a --key k --points 0.01 --points 0.05,10,1 -o det.svg
evenscore plot det a --key k --bootstrap 500 \\
    --enroll-speakers utt2spk -o det.png
"""
_BAYES = """
evenscore plot bayes llr.scores --key dev.trials -o bayes.svg
evenscore plot bayes a b --key k --points 0.01 -o bayes.pdf
"""
_HIST = """
evenscore plot hist dev.scores --key dev.trials -o hist.svg
evenscore plot hist dev.scores --key k --model m.json -o hist.png
evenscore plot hist dev.scores --key k --calibration-file c.json -o h.png
"""
_TIPPETT = """
evenscore plot tippett llr.scores --key dev.trials -o tippett.svg
evenscore plot tippett a b --key k --log10 -o tippett.pdf
"""
_RELIABILITY = """
evenscore plot reliability llr.scores --key dev.trials -o rel.svg
evenscore plot reliability a b --key k --p-target 0.05 -o rel.pdf
"""
_EFFECT = """
evenscore plot effect raw.scores norm.scores --key k -o effect.png
evenscore plot effect a b --key k --name raw --name AS-norm -o e.svg
"""

Systems = Annotated[list[str], typer.Argument(metavar="SCORES", help="Scores; one file for each system.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Figure to write: .svg, .pdf or .png.")]
Names = Annotated[
    list[str] | None, typer.Option("--name", metavar="TEXT", help="Name in the figure, one for each file of scores.")
]
Points = Annotated[
    list[str] | None,
    typer.Option("--points", metavar="P[,CM,CF]", help="Operating point: prior of a target, and costs if not 1 and 1."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title above the figure.")]
Size = Annotated[str | None, typer.Option("--size", metavar="WxH", help="Width and height in inches, such as 5x4.")]
Dpi = Annotated[int, typer.Option("--dpi", min=10, max=2400, metavar="N", help="Dots per inch of a .png.")]


def det(
    scores: Systems,
    output: Output,
    key: opt.Key = None,
    name: Names = None,
    points: Points = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=0, metavar="N", help="Confidence bands from N draws of the speakers.")
    ] = 0,
    level: Annotated[float, typer.Option("--level", metavar="L", help="Level of the bands.")] = 0.95,
    bootstrap_seed: opt.BootstrapSeed = 0,
    rule_of_30: Annotated[
        bool, typer.Option("--rule-of-30/--no-rule-of-30", help="Mark the rates that rest on 30 errors.")
    ] = True,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw DET curves: the miss rate against the false-alarm rate at all thresholds, on probit axes.

    A dot is the equal error rate. Operating points are marked open at the minimum detection cost and full at the actual
    one, where scores are taken for log-likelihood ratios. Bands come from drawing speakers with replacement; without
    speaker maps, ids that target trials connect are of one speaker.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
    figure, marked = _figure(output, title, size, dpi), _points(points)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    systems = _systems(scores, name, labels)
    from evenscore.cli.speaker_sources import speakers_of
    from evenscore.metrics import bootstrap_det
    from evenscore.plot import plot_det

    bands = {}
    for name_shown, trials in systems.items() if bootstrap else ():
        sides: Any = speakers_of(trials, labels).sides
        bands[name_shown] = bootstrap_det(trials, **sides, replicates=bootstrap, level=level, seed=bootstrap_seed)
    figure.draw(lambda ax: plot_det(_alone(systems), points=marked, band=bands, rule_of_30=rule_of_30, ax=ax))


def bayes(
    scores: Systems,
    output: Output,
    key: opt.Key = None,
    name: Names = None,
    points: Points = None,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw normalized Bayes error rates of log-likelihood ratios against the prior: actual, minimum and default.

    The gap between the actual and the minimum rate is what better calibration could gain at that prior. Operating
    points are marked by upright lines.
    """
    figure, marked = _figure(output, title, size, dpi), _points(points)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    systems = _systems(scores, name, labels)
    from evenscore.plot import plot_bayes_error

    figure.draw(lambda ax: plot_bayes_error(_alone(systems), points=marked, ax=ax))


def hist(
    scores: Annotated[str, typer.Argument(metavar="SCORES", help="Scores of one system.")],
    output: Output,
    key: opt.Key = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="FILE", help="Model file of 'evenscore fit': draw its densities.")
    ] = None,
    calibration_file: Annotated[
        str | None,
        typer.Option(
            "--calibration-file", metavar="FILE", help="Gaussian, Bayesian or unsupervised calibration instead."
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option("--bins", min=1, max=10000, metavar="N", help="Number of bins; chosen if not given.")
    ] = None,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw a histogram of the scores of each class, with the densities of a model if one is given."""
    if model is not None and calibration_file is not None:
        raise InputError("both a model and a calibration were given; draw the densities of one of the two")
    figure = _figure(output, title, size, dpi)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    [trials] = _systems([scores], None, labels).values()
    from evenscore.plot import plot_histograms

    densities = _densities(model, calibration_file)
    figure.draw(lambda ax: plot_histograms(trials, model=densities, bins=bins, ax=ax))


def tippett(
    scores: Systems,
    output: Output,
    key: opt.Key = None,
    name: Names = None,
    log10: Annotated[bool, typer.Option("--log10", help="Show logarithms to the base 10.")] = False,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw the share of targets and of non-targets whose log-likelihood ratio is at least so large."""
    figure = _figure(output, title, size, dpi)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    systems = _systems(scores, name, labels)
    from evenscore.plot import plot_tippett

    figure.draw(lambda ax: plot_tippett(_alone(systems), log10=log10, ax=ax))


def reliability(
    scores: Systems,
    output: Output,
    key: opt.Key = None,
    name: Names = None,
    p_target: Annotated[
        float | None,
        typer.Option("--p-target", metavar="P", help="Show posterior probabilities at this prior, not LLRs."),
    ] = None,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw what log-likelihood ratios turn out to mean, by isotonic calibration, against what they claim.

    A calibrated system follows the diagonal.
    """
    figure = _figure(output, title, size, dpi)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    systems = _systems(scores, name, labels)
    from evenscore.plot import plot_reliability

    figure.draw(lambda ax: plot_reliability(_alone(systems), p_target=p_target, ax=ax))


def effect(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="Scores before the norm or calibration.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Scores of the same trials after it.")],
    output: Output,
    key: opt.Key = None,
    name: Names = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Trials of each class to draw.")] = 5000,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    title: Title = None,
    size: Size = None,
    dpi: Dpi = 200,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
) -> None:
    """Draw the scores after a norm against those before, trial by trial and coloured by class."""
    figure = _figure(output, title, size, dpi)
    labels = _labels(key, unmatched, enroll_speakers, test_speakers)
    pair = _systems([before, after], name, labels)
    from evenscore.plot import plot_norm_effect

    (first, raw), (second, normalized) = pair.items()
    figure.draw(lambda ax: plot_norm_effect(raw, normalized, names=(first, second), most=most, ax=ax))


COMMANDS = (
    ("det", det, _DET),
    ("bayes", bayes, _BAYES),
    ("hist", hist, _HIST),
    ("tippett", tippett, _TIPPETT),
    ("reliability", reliability, _RELIABILITY),
    ("effect", effect, _EFFECT),
)  #: name, function and examples of each command


def _figure(output: str, title: str | None, size: str | None, dpi: int) -> FigureFile:
    """Check what is asked of the figure before anything is read."""
    from evenscore.cli.figures import FigureFile, size_of
    from evenscore.plot.style import figure_format, require_matplotlib

    require_matplotlib()
    figure_format(output)
    return FigureFile(output, title=title, size=None if size is None else size_of(size), dpi=dpi)


def _labels(key: str | None, unmatched: opt.Unmatched, enroll: str | None, test: str | None) -> LabelSources:
    from evenscore.cli.labelled import LabelSources

    return LabelSources(
        keys=() if key is None else (key,),
        enroll_speakers=enroll,
        test_speakers=test,
        unmatched=unmatched.value,
    )


def _systems(paths: list[str], names: list[str] | None, labels: LabelSources) -> dict[str, TrialList]:
    from evenscore.cli.figures import read_systems

    return read_systems(paths, names or (), labels)


def _alone(systems: dict[str, TrialList]) -> TrialList | dict[str, TrialList]:
    """Return a system without a name as itself."""
    return systems.get("", systems)


def _points(texts: list[str] | None) -> tuple[OperatingPoint, ...] | None:
    from evenscore.cli.evaluate import parsed_points

    return parsed_points(texts) if texts else None


def _densities(model: str | None, calibration: str | None) -> object | None:
    from evenscore.files.models import load_calibration, load_model

    if model is not None:
        return load_model(model)
    return None if calibration is None else load_calibration(calibration)
