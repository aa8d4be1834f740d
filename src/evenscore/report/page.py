"""From a comparison to one HTML page.

Everything that comes from the user's files goes through the template's escaping. The page's policy lets the browser run
and style with exactly the two texts whose hashes it names, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING

from evenscore.report import charts, tables

if TYPE_CHECKING:
    from evenscore.comparison.record import Comparison

__all__ = ["render_report"]

# Control codes, halves of letters, and what turns text around: they could hide or change what stands beside them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def render_report(comparison: Comparison) -> str:
    """Return the report of a comparison: one HTML page that needs nothing else, not even a network.

    Parameters
    ----------
    comparison
        What `compare` found.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate, simulate_blocks
    >>> from evenscore.comparison import compare
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    >>> training = LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=1))
    >>> evaluation = LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=2))
    >>> render_report(compare([training], [evaluation], ["raw", "s"], bootstrap=50))[:15]
    '<!doctype html>'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("evenscore.report", "template")
    templates = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    sources = [loader.get_source(templates, name)[0] for name in ("style.css", "script.js")]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in sources]
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    )
    systems = charts.looks(comparison)
    return templates.get_template("report.html").render(
        comparison=comparison,
        tables=tables,
        systems=systems,
        det=charts.det_chart(comparison, systems),
        bayes=charts.bayes_chart(comparison, systems),
        histograms=charts.histogram_charts(comparison),
        policy=policy,
        style=Markup(sources[0]),  # noqa: S704  (the program's own text)
        script=Markup(sources[1]),  # noqa: S704
    )


def _visible(value: object) -> object:
    """Write what cannot be seen in other people's texts as escapes; the program's own markup is left as it is."""
    if type(value) is not str:
        return value
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1] if found[0].isascii() else "\ufffd", value)
