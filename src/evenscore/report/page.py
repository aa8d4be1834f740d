"""From content to one HTML file.

Everything that comes from the user's files goes through the template's escaping or, for the plots, through `as_json`.
The page's policy lets the browser run and style with exactly the texts whose hashes it names, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evenscore.files.streams import PathLike, atomic_output

if TYPE_CHECKING:
    from jinja2 import Environment

    from evenscore.comparison.comparison import Comparison
    from evenscore.report.content import Content

__all__ = ["as_json", "render", "write_report"]

_SCRIPTS = ("tables.js", "figures.js", "plots.js")
# What ends a script element, what starts a comment in one, and the two line ends that JavaScript had and JSON has not.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # control codes, and what turns text around
_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def write_report(comparison: Comparison, path: PathLike) -> None:
    """Write the report of a comparison: one HTML file that needs nothing else, not even a network.

    Parameters
    ----------
    comparison
        What `compare` found.
    path
        The file, usually named ``.html``. It appears under its name only when it is complete.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, compare, simulate, simulate_blocks, write_report
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    >>> training = LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=1))
    >>> evaluation = LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=2))
    >>> comparison = compare([training], [evaluation], ["raw", "s"], bootstrap=50)
    >>> folder = getfixture("tmp_path")
    >>> write_report(comparison, folder / "report.html")
    >>> (folder / "report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    from evenscore.report.sections import content_of

    page = render(content_of(comparison))
    with atomic_output(path) as file:
        file.write(page.encode("utf-8", errors="replace"))


def render(content: Content) -> str:
    """Return the page."""
    from markupsafe import Markup

    templates = _templates()
    library, packed = _plotly()
    style, plot_style = _text(templates, "style.css"), _text(templates, "plotly.css")
    script = "\n".join(_text(templates, name) for name in _SCRIPTS)
    # Only texts of the program itself are marked as safe here, and the JSON, whose markup is escaped.
    return templates.get_template("report.html").render(
        content=content,
        policy=_policy(scripts=(script, library), styles=(style, plot_style)),
        style=Markup(style),  # noqa: S704
        plot_style=Markup(plot_style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        plotly_packed=packed,
        plot_data=Markup(as_json(content.plots)),  # noqa: S704
    )


def as_json(value: Any) -> str:
    r"""Return JSON that can stand in a script element: no character of it can end the element.

    Examples
    --------
    >>> print(as_json({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def _policy(*, scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    allowed = {"script-src": scripts, "style-src": styles}
    rules = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    rules += [f"{name} {' '.join(_hash(text) for text in texts)}" for name, texts in allowed.items()]
    return "; ".join(rules)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("evenscore.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_visible,
    )


def _visible(value: Any) -> Any:
    """Write control codes of other people's texts as escapes, so that none can hide or turn around what follows."""
    if type(value) is not str:  # the program's own markup
        return value
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], value)


def _text(templates: Environment, name: str) -> str:
    """Return a file of the template as it is."""
    loader = templates.loader
    assert loader is not None  # noqa: S101
    return loader.get_source(templates, name)[0]


@lru_cache(maxsize=1)
def _plotly() -> tuple[str, str]:
    """Return the text of plotly.js, and the same packed: a third of its size."""
    from plotly.offline import get_plotlyjs

    text = get_plotlyjs()
    packed = zlib.compress(text.encode("utf-8"), 9)
    return text, base64.b64encode(packed).decode("ascii")
