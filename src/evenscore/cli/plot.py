"""``evenscore plot``: figures of labelled scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.cli.options import file_option, operating_point
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.data.trial_list import TrialList
    from evenscore.metrics import DetBand

__all__ = ["EXAMPLES", "plot"]

EXAMPLES = """
evenscore plot det a.scores b.scores --key dev.trials -o det.svg
evenscore plot det a b --name raw --name AS-norm --key k -o det.pdf
evenscore plot det a --key k --points 0.01 --bootstrap 500 -o det.png
evenscore plot hist dev.scores --key k --model gauss.json -o hist.png
evenscore plot effect raw.scores norm.scores --key k -o effect.png
"""
Kind = Literal["det", "bayes", "ece", "hist", "qq", "tippett", "reliability", "effect"]
_FILES = {"hist": 1, "qq": 1, "effect": 2}  # files of scores, where their number is fixed
_ONLY = {"bootstrap": "det", "points": "det bayes", "model": "hist", "log10": "tippett", "p_target": "reliability"}


def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="What to draw.")],
    scores: Annotated[list[str], typer.Argument(metavar="SCORES...", help="Scores, a file for each system.")],
    output: Annotated[str, file_option("Figure to write: .svg, .pdf or .png.", "--output", "-o")],
    key: Annotated[list[str] | None, file_option("Labels: one for all, or one for each.", "--key", "-k")] = None,
    speakers: Annotated[str | None, file_option("Speakers of both sides by id, in place of a key.")] = None,
    name: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Name of a system, one for each file.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Draw on a dark ground.")] = False,
    points: Annotated[
        list[str] | None, typer.Option(metavar="P[,CM,CF]", help="det, bayes: mark a prior, and costs.")
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, metavar="N", help="det: 95 % bands from N draws of the speakers.")
    ] = 0,
    model: Annotated[str | None, file_option("hist: Gaussians of a score model or a calibration.")] = None,
    log10: Annotated[bool, typer.Option("--log10", help="tippett: logarithms to the base 10.")] = False,
    p_target: Annotated[
        float | None, typer.Option(metavar="P", help="reliability: posterior probabilities at this prior.")
    ] = None,
) -> None:
    """Draw a figure of labelled scores.

    det: misses against false alarms. bayes, ece: cost of log-likelihood ratios over the priors. hist, qq: the scores of
    each class, and how Gaussian they are. tippett: the share of log-likelihood ratios that are at least so large.
    reliability: what they turn out to mean. effect: scores after a norm (second file) against those before it.
    """
    import evenscore.plot as draw
    from evenscore.cli.inputs import read_labelled
    from evenscore.files import figure_format, save_figure

    figure_format(output)  # refused before the work, not after it
    given = {"bootstrap": bootstrap, "points": points, "log10": log10, "p_target": p_target, "model": model}
    for option, kinds in _ONLY.items():
        if given[option] and kind not in kinds.split():
            raise InputError(f"--{option.replace('_', '-')} is for {kinds.replace(' ', ' and ')}, not for {kind}")
    if len(scores) != _FILES.get(kind, len(scores)):
        raise InputError(f"{kind} needs {_FILES[kind]} of SCORES, but there are {len(scores)}")
    names = _names(scores, name or [])
    read = read_labelled(scores, key or [], speakers)
    tables = [table.to_trials(labels) if table.rows is None else table for table, labels in read]
    systems = dict(zip(names, tables, strict=True))
    data: Any = systems.get("", systems)  # a system without a name is drawn as itself
    places = [operating_point(text) for text in points or ()] or None
    with draw.figure_style(dark=dark):
        from matplotlib.figure import Figure

        figure = Figure()
        ax = figure.subplots()
        if kind == "det":
            bands = {label: _band(table, bootstrap) for label, table in systems.items()} if bootstrap else None
            draw.plot_det(data, points=places, band=bands, ax=ax)
        elif kind == "bayes":
            draw.plot_bayes_error(data, points=places, ax=ax)
        elif kind == "ece":
            draw.plot_ece(data, ax=ax)
        elif kind == "hist":
            draw.plot_histograms(tables[0], moments=None if model is None else _moments(model), ax=ax)
        elif kind == "qq":
            draw.plot_qq(tables[0], ax=ax)
        elif kind == "tippett":
            draw.plot_tippett(data, log10=log10, ax=ax)
        elif kind == "reliability":
            draw.plot_reliability(data, p_target=p_target, ax=ax)
        else:
            draw.plot_norm_effect(tables[0], tables[1], names=(names[0], names[1]), ax=ax)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # the font lacks a letter of a name: a box stands in its place
            save_figure(figure, output)


def _names(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the systems: those given, or the files' names; one file alone needs none."""
    if not names:
        short = [PurePath(path).name for path in paths] if len(paths) > 1 else [""]
        names = short if len(set(short)) == len(short) else paths
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise InputError(f"there are {len(paths)} files of scores; give a different --name for each of them")
    return list(names)


def _band(trials: TrialList, replicates: int) -> DetBand:
    """Return a confidence band; without speaker maps, ids that target trials connect are of one speaker."""
    from evenscore.metrics import bootstrap_det, speakers_from_targets

    if trials.enroll.speakers is None or trials.test.speakers is None:
        known = speakers_from_targets([trials])
        trials = trials.with_speakers(known, known)
    return bootstrap_det(trials, replicates=replicates)


def _moments(path: str) -> tuple[Any, Any]:
    """Return means and variances of both classes in a score model or a calibration."""
    from evenscore.files import read_model

    model: Any = read_model(path)
    if hasattr(model, "mu"):
        return model.mu, model.sigma2 + model.variances.nu
    if hasattr(model, "variance"):
        return model.mean, model.variance
    raise InputError(f"the classes of {path} are not Gaussian; give a score model, or a gaussian calibration")
