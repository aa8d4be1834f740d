"""``evenscore plot``: figures of scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import option_name, with_records
from evenscore.cli.output import check_output
from evenscore.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenscore.cli.labelled import LabelSources
    from evenscore.tables import TrialList

__all__ = ["EXAMPLES", "plot"]

EXAMPLES = """
evenscore plot det a.scores b.scores --key dev.trials -o det.svg
evenscore plot det a b --name raw --name AS-norm --key k -o det.pdf
evenscore plot det a --key k --points 0.01 --points 0.05,10,1 -o d.svg
evenscore plot det a --key k --bootstrap 500:level=0.9 -o det.png
evenscore plot bayes llr.scores --key dev.trials -o bayes.pdf
evenscore plot ece llr.scores --key dev.trials -o ece.pdf
evenscore plot hist dev.scores --key k --model m.json -o hist.png
evenscore plot qq dev.scores --key k --model m.json -o qq.svg
evenscore plot tippett a b --key k --log10 -o tippett.pdf
evenscore plot reliability a b --key k --p-target 0.05 -o rel.pdf
evenscore plot effect raw.scores norm.scores --key k -o effect.png
"""

_SMALLEST, _LARGEST = 1.0, 100.0  # inches
Kind = Literal["det", "bayes", "ece", "hist", "qq", "tippett", "reliability", "effect"]


@dataclass(frozen=True, kw_only=True)
class KindChoices:
    """What some kinds of figures show."""

    PANEL: ClassVar[str] = "For some kinds"

    name: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="all but hist and qq: name in the figure, one for each file of scores."),
    ] = None
    points: Annotated[
        list[str] | None,
        typer.Option(metavar="P[,CM,CF]", help="det, bayes: operating point, prior of a target, and costs if not 1."),
    ] = None
    bootstrap: Annotated[
        str, typer.Option(metavar="N[:level=L:seed=S]", help="det: confidence bands from N draws of the speakers.")
    ] = "0"
    model: Annotated[
        str | None,
        opt.file(
            "hist: draw the densities of a model of 'evenscore fit', or of a Gaussian, Bayesian or unsupervised "
            "calibration; qq: take the means and deviations of one, but for a Bayesian one."
        ),
    ] = None
    bins: Annotated[
        int | None, typer.Option(min=1, max=10000, metavar="N", help="hist: number of bins; chosen if not given.")
    ] = None
    log10: Annotated[bool, typer.Option("--log10", help="tippett: show logarithms to the base 10.")] = False
    p_target: Annotated[
        float | None,
        typer.Option(metavar="P", help="reliability: show posterior probabilities at this prior, not LLRs."),
    ] = None
    most: Annotated[int, typer.Option(min=1, metavar="N", help="effect: trials of each class to draw.")] = 5000

    def refuse_unused(self, kind: Kind) -> None:
        """Refuse an option that this kind has no use for."""
        for field in fields(self):
            users = [other for other, names in _USED.items() if field.name in names]
            if kind not in users and getattr(self, field.name) != field.default:
                raise InputError(f"{option_name(field.name)} is for {' and '.join(users)}, not for {kind}")


_USED = {
    "det": ("name", "points", "bootstrap"),
    "bayes": ("name", "points"),
    "ece": ("name",),
    "hist": ("model", "bins"),
    "qq": ("model",),
    "tippett": ("name", "log10"),
    "reliability": ("name", "p_target"),
    "effect": ("name", "most"),
}  #: which options each kind has


@with_records
def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"What to draw: {', '.join(_USED)}.")],
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="Scores, a file for each system; hist and qq take one, effect two."),
    ],
    output: Annotated[str, opt.file("Figure to write: .svg, .pdf or .png.", "--output", "-o")],
    key: opt.Key = None,
    *,
    labels: opt.LabelChoices,
    choices: KindChoices,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title above the figure.", rich_help_panel=opt.OUTPUT)
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="WxH", help="Width and height in inches, such as 5x4.", rich_help_panel=opt.OUTPUT
        ),
    ] = None,
    dpi: Annotated[
        int,
        typer.Option(
            "--dpi", min=10, max=2400, metavar="N", help="Dots per inch of a .png.", rich_help_panel=opt.OUTPUT
        ),
    ] = 200,
) -> None:
    """Draw a figure of labelled scores.

    det: the miss rate against the false-alarm rate at all thresholds, on probit axes. A dot is the equal error rate;
    operating points are marked open at the minimum detection cost and full at the actual one. Bands come from drawing
    speakers with replacement; without speaker maps, ids that target trials connect are of one speaker.

    bayes: normalized Bayes error rates of log-likelihood ratios against the prior, actual, minimum and default; the gap
    between actual and minimum is what better calibration could gain. Operating points are upright lines.

    ece: the empirical cross-entropy of log-likelihood ratios against the prior: actual, after the best calibration, and
    of the prior alone, in bits.

    hist: a histogram of the scores of each class, with the densities of a model if one is given.

    qq: the quantiles of each class against those of a Gaussian, in standard deviations from the mean, of the class
    itself or of a model; Gaussian scores follow the diagonal, and heavy tails and skew bend away from it.

    tippett: the share of targets and of non-targets whose log-likelihood ratio is at least so large.

    reliability: what log-likelihood ratios turn out to mean, by isotonic calibration, against what they claim; a
    calibrated system follows the diagonal.

    effect: scores after a norm or calibration (the second file) against those before it (the first), trial by trial.
    """
    from evenscore.plot.style import figure_format, require_matplotlib

    require_matplotlib()  # all that can be wrong is looked at before anything is read
    figure_format(output)
    check_output(output)
    choices.refuse_unused(kind)
    wanted = {"hist": 1, "qq": 1, "effect": 2}.get(kind, len(scores))
    if len(scores) != wanted:
        raise InputError(f"{kind} draws {wanted} file{'s' * (wanted > 1)} of scores, but there are {len(scores)}")
    inches = None if size is None else size_of(size)
    sources = labels.sources(key)
    draw = _drawing(kind, choices, lambda: read_systems(scores, choices.name or (), sources), sources)
    save(draw, output, title, inches, dpi)


def _drawing(
    kind: Kind, choices: KindChoices, read: Callable[[], dict[str, TrialList]], sources: LabelSources
) -> Callable[[Axes], Axes]:
    """Check the options of the kind, read the systems, and return what draws them on axes."""
    import evenscore.plot as draw

    points = opt.parsed_points(choices.points) if choices.points else None
    draws, densities = opt.Draws.of(choices.bootstrap), None if choices.model is None else _densities(choices.model)
    systems = read()
    alone: Any = systems.get("", systems)  # a system without a name is drawn as itself
    if kind == "det":
        bands = _bands(systems, sources, draws) if draws.number else {}
        return lambda ax: draw.plot_det(alone, points=points, band=bands, ax=ax)
    if kind == "bayes":
        return lambda ax: draw.plot_bayes_error(alone, points=points, ax=ax)
    if kind == "ece":
        return lambda ax: draw.plot_ece(alone, ax=ax)
    if kind == "hist":
        return lambda ax: draw.plot_histograms(alone, model=densities, bins=choices.bins, ax=ax)
    if kind == "qq":
        return lambda ax: draw.plot_qq(alone, model=densities, ax=ax)
    if kind == "tippett":
        return lambda ax: draw.plot_tippett(alone, log10=choices.log10, ax=ax)
    if kind == "reliability":
        return lambda ax: draw.plot_reliability(alone, p_target=choices.p_target, ax=ax)
    (first, raw), (second, normalized) = systems.items()
    return lambda ax: draw.plot_norm_effect(raw, normalized, names=(first, second), most=choices.most, ax=ax)


def _bands(systems: Mapping[str, TrialList], sources: LabelSources, draws: opt.Draws) -> dict[str, Any]:
    from evenscore.cli.labelled import speakers_of, with_known_speakers
    from evenscore.metrics import bootstrap_det

    how: dict[str, Any] = {"replicates": draws.number, "level": draws.level, "seed": draws.seed}
    known = {name: with_known_speakers(trials, sources, trials)[0] for name, trials in systems.items()}
    return {name: bootstrap_det(trials, **speakers_of(trials), **how) for name, trials in known.items()}


def _densities(path: str) -> object:
    from evenscore.files import load_calibration, load_model, read_json
    from evenscore.files.models import CALIBRATION

    return load_calibration(path) if read_json(path).get("format") == CALIBRATION.name else load_model(path)


def save(
    draw: Callable[[Axes], Axes],
    path: str,
    title: str | None = None,
    size: tuple[float, float] | None = None,
    dpi: int = 200,
) -> None:
    """Draw on new axes, and write the file when the figure is done."""
    from evenscore.plot.style import figure_style, literal, save_figure

    with figure_style():
        from matplotlib.figure import Figure

        ax = draw(Figure(figsize=size).subplots())
        if title is not None:
            literal(ax.set_title(""), title)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            save_figure(ax, path, dpi=dpi)
    if any("Glyph" in str(warning.message) for warning in caught):
        typer.echo("warning: the font lacks letters of a name or the title; boxes stand in their place", err=True)


def size_of(text: str) -> tuple[float, float]:
    """Return width and height in inches from a text such as '5x4'."""
    try:
        width, height = (float(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f"the size is {text!r}, but must be width x height in inches, such as 5x4") from None
    if not all(_SMALLEST <= side <= _LARGEST for side in (width, height)):
        raise InputError(f"the size is {text!r}, but a figure has from {_SMALLEST:g} to {_LARGEST:g} inches a side")
    return width, height


def names_of(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the systems: those given, else the files' names, with folders where they are equal."""
    if not names:
        short = [PurePath(path).name for path in paths]
        names = short if len(set(short)) == len(short) else list(paths)
    elif len(names) != len(paths):
        raise InputError(f"there are {len(paths)} files of scores, but {len(names)} names; give one --name for each")
    repeated = [name for name in names if list(names).count(name) > 1]
    if repeated:
        raise InputError(f"two systems are called {repeated[0]!r}; give them different names with --name")
    return list(names)


def read_systems(paths: Sequence[str], names: Sequence[str], labels: LabelSources) -> dict[str, TrialList]:
    """Read labelled scores by name of system; one system for which no name is given has the empty name."""
    from evenscore.cli.evaluation import evaluated, open_labelled

    shown = [""] if len(paths) == 1 and not names else names_of(paths, names)
    files = open_labelled(paths, labels)
    return {name: evaluated(file).trials for name, file in zip(shown, files, strict=True)}
