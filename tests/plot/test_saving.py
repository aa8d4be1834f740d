"""Figures become files that depend on nothing but the figure."""

import matplotlib
import numpy as np
import pytest
from drawn_figures import FIGURES, LABELS, LLR, RAW, drawn

from evenscore import FileError
from evenscore.plot import figure_style, plot_det, plot_norm_effect, save_figure


@pytest.mark.parametrize(
    ("name", "ending"), [*((name, "svg") for name in FIGURES), ("det", "pdf"), ("norm_effect", "png")]
)
def test_the_same_figure_gives_the_same_bytes(name, ending, tmp_path):
    for copy in ("a", "b"):
        save_figure(drawn(FIGURES[name]), tmp_path / f"{copy}.{ending}", dpi=50)
    data = (tmp_path / f"a.{ending}").read_bytes()
    assert data == (tmp_path / f"b.{ending}").read_bytes()
    assert data.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[ending])
    assert b"CreationDate" not in data
    assert b"<dc:date>" not in data


def test_the_users_settings_do_not_change_our_style(tmp_path):
    for name, settings in (("a", {"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"}), ("b", {})):
        with matplotlib.rc_context(settings), figure_style():
            save_figure(drawn(FIGURES["tippett"]), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    size = matplotlib.rcParams["font.size"]
    with figure_style():
        pass
    assert matplotlib.rcParams["font.size"] == size


def test_names_cannot_break_an_svg(tmp_path):
    from xml.etree import ElementTree

    ax = drawn(lambda ax: plot_det({"<script>&'\"]]>": LLR, "$\\bad_{": RAW}, LABELS, ax=ax))
    save_figure(ax, tmp_path / "a.svg")
    assert b"<script" not in (tmp_path / "a.svg").read_bytes()
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")  # noqa: S314


def test_many_points_become_a_picture_in_an_svg(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(20_000) % 2 == 0
    scores = rng.normal(labels)
    save_figure(drawn(lambda ax: plot_norm_effect(scores, 2 * scores, labels, ax=ax)), tmp_path / "a.svg", dpi=100)
    data = (tmp_path / "a.svg").read_bytes()
    assert b"data:image/png;base64" in data
    assert len(data) < 300_000


@pytest.fixture(scope="module")
def figure():
    return drawn(FIGURES["reliability"])


@pytest.mark.parametrize("name", ["det.bmp", "det", "svg", "det.svg.gz", "-"])
def test_other_endings_are_refused(figure, name, tmp_path):
    with pytest.raises(FileError, match=r"must end in one of \.svg, \.pdf, \.png"):
        save_figure(figure, tmp_path / name if name != "-" else "-")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_leaves_nothing(figure, tmp_path):
    with pytest.raises(FileError, match="directory does not exist"):
        save_figure(figure, tmp_path / "absent" / "a.svg")
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(FileError, match="this is a directory"):
        save_figure(figure, tmp_path / "a.svg")
