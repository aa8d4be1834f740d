"""Tables, page and figures show the numbers of the experiment."""

import csv
import io
import json
import re

import numpy as np
import pytest

pytest.importorskip("networkx", reason="graphs need the extra 'theory'")
pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")
from matplotlib.figure import Figure

from recipes.theory.bounds import Bound
from recipes.theory.calibration import check_calibration, model_scores
from recipes.theory.dependence_figure import LAYOUTS, draw_dependence
from recipes.theory.figures import draw_broken, draw_calibration, draw_gain, draw_killer
from recipes.theory.ideal import COMPARED, GAUSSIAN, METRICS, ORACLE, SCORE_MODEL, SYSTEMS, Estimate, Ideal, Level
from recipes.theory.page import ideal_page, killer_verdict, mismatch_verdict
from recipes.theory.tables import as_csv, as_json, bounds_table, broken_tables, growth_table, killer_table, rows_of
from recipes.theory.world import Sizes


def level(name, gain, *, width=0.01):
    """Make a level at which every norm has this gain, and raw scores a Cllr of 0.5."""
    differences = {
        system: Estimate(-gain, -gain - width, -gain + width) if system in COMPARED else Estimate(0, 0, 0)
        for system in SYSTEMS
    }
    differences[ORACLE] = Estimate(-0.4, -0.41, -0.39)
    values = {name: Estimate(0.5 + found.value, 0.4, 0.6) for name, found in differences.items()}
    return Level(
        name,
        {system: dict.fromkeys(METRICS, found) for system, found in values.items()},
        {system: dict.fromkeys(METRICS, found) for system, found in differences.items()},
        dict.fromkeys(METRICS, Estimate(-gain / 2, -gain / 2 - width, -gain / 2 + width)),
    )


def results(killer, broken, seeds=(1, 2), bounds=None):
    return Ideal(killer=killer, broken=broken, seeds=seeds, sizes=Sizes(), bounds=bounds or {})


@pytest.fixture
def ideal():
    broken = {"scaled-noise": [level("1", -0.1), level("2", 0.005), level("4", 0.2)]}
    bounds = {"none": {GAUSSIAN: [Bound(0.2, 3.0, 0.0, 0.1), Bound(0.25, 4.0, 0.001, 0.2)]}}
    bounds["scaled-noise"] = {SCORE_MODEL: [Bound(2.0, -3.5, 0.15, 0.0), Bound(0.9, 9.0, 0.15, 0.0)]}
    return results(level("ideal", -0.05), broken, bounds=bounds)


@pytest.fixture(scope="module")
def checked():
    return {"drawn": check_calibration(*model_scores(speakers=40, sets=1))}


def test_there_is_a_row_for_every_number(ideal):
    rows = list(csv.DictReader(io.StringIO(as_csv(rows_of(ideal)))))
    assert len(rows) == 4 * (len(SYSTEMS) + 1) * len(METRICS)
    (row,) = [r for r in rows if (r["level"], r["system"], r["metric"]) == ("4", "lgsm", "cllr")]
    assert row["break"] == "scaled-noise"
    assert float(row["difference"]) == -0.2
    assert float(row["difference_high"]) == -0.19
    assert float(row["value"]) == 0.3


def test_results_are_plain_json(ideal, checked):
    found = json.loads(json.dumps(as_json(ideal, checked), allow_nan=False))
    assert len(found["norms"]) == 4 * (len(SYSTEMS) + 1) * len(METRICS)
    assert found["seeds"] == [1, 2]
    assert found["information"]["ideal score"]["all"] < 1e-12
    assert {answer["graph"] for answer in found["dependence"]} == {"score", "ideal", "training", "runtime"}
    assert set(found["calibration"]["drawn"]) == {
        "raw, calibrated",
        "ZT-norm, calibrated",
        "LGSM, D = 0",
        "LGSM",
    }
    assert found["norm_effect"][-1] == {
        "break": "scaled-noise",
        "level": "4",
        "metric": "min_cllr",
        "value": -0.1,
        "low": -0.11,
        "high": pytest.approx(-0.09),
    }
    assert found["bounds"]["none"][GAUSSIAN][0]["extreme"] == 3.0
    assert set(found["bounds"]["drawn"]) == {"LGSM, D = 0", "LGSM"}


def test_one_seed_has_no_interval_and_still_makes_json(checked):
    wide = results(level("ideal", 0.0, width=np.inf), {}, (1,))
    rows = as_json(wide, checked)["norms"]
    assert [row["difference_low"] for row in rows if row["system"] == "s"] == [None] * len(METRICS)


def test_tables_have_as_many_cells_in_every_row(ideal):
    for table in (killer_table(ideal), *broken_tables(ideal).values(), *broken_tables(ideal, "eer").values()):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_sure_gain_is_bold_and_its_share_is_told(ideal):
    lines = broken_tables(ideal)["scaled-noise"].splitlines()
    assert "**" not in lines[2] + lines[3]
    assert lines[4].count("**-0.200 ± 0.010**") == 7
    assert lines[4].endswith("| 50 % / 50 % |")
    assert "-20.00 ± 1.00" in broken_tables(ideal, "eer")["scaled-noise"]


def test_growth_is_told_as_gain(ideal):
    lines = growth_table(ideal).splitlines()
    broken = "| mismatched covariance: larger"
    assert lines[2] == f"{broken} | EER, % points | raw | -10.00 ± 1.00 | +0.50 ± 1.00 | +20.00 ± 1.00 |"
    assert lines[3] == f"{broken} | EER, % points | D = 0 | -5.00 ± 1.00 | +0.25 ± 1.00 | +10.00 ± 1.00 |"
    assert lines[4] == f"{broken} | Cllr | raw | -0.100 ± 0.010 | +0.005 ± 0.010 | +0.200 ± 0.010 |"


def test_bounds_are_told_as_ranges_over_draws(ideal, checked):
    lines = bounds_table(ideal, checked).splitlines()
    assert (
        lines[2] == "| ideal scores | LGSM, D = 0 | 0.20 to 0.25 | ceiling 3.00 to 4.00 | 0.0 to 0.1 | 10.0 to 20.0 |"
    )
    assert lines[3].startswith(
        "| mismatched covariance: larger (4) | LGSM | 0.90 to 2.00 | ceiling or floor -3.50 to 9.00 |"
    )
    assert lines[4].startswith("| drawn | LGSM, D = 0 |")
    assert " | floor -" in lines[4]


def test_the_verdicts_follow_the_numbers(ideal):
    assert killer_verdict(ideal) == "No norm gains over raw scores in Cllr; each one loses for sure."
    assert mismatch_verdict(ideal, "scaled-noise").endswith(
        "in Cllr grows with every level: -0.100, +0.005, +0.200; "
        "in Cllr over D = 0 (the norm alone) grows with every level: -0.050, +0.003, +0.100"
    )
    other = results(level("ideal", 0.05), {"x": [level("1", 0.1), level("2", 0.0)]}, (1,))
    assert killer_verdict(other).startswith("Z-norm, T-norm, ZT-norm, S-norm, AS-norm and LGSM gain over raw")
    assert "no norm gains for sure" in mismatch_verdict(other, "x")
    assert "does not grow with every level" in mismatch_verdict(other, "x")
    unsure = results(level("ideal", 0.0), {}, (1,))
    assert "AS-norm and LGSM is within its interval" in killer_verdict(unsure)


def test_the_page_shows_every_figure_and_table(ideal, checked):
    page = ideal_page(ideal, checked)
    assert re.findall(r"\((\w+\.svg)\)", page) == [
        "dependence.svg",
        "killer.svg",
        "broken.svg",
        "gain.svg",
        "calibration.svg",
    ]
    assert killer_table(ideal) in page


def test_figures_have_what_they_should(ideal, checked):
    figures = [Figure() for _ in range(5)]
    draw_dependence(figures[0])
    assert [ax.get_title() for ax in figures[0].axes] == [layout.title for layout in LAYOUTS.values()]
    assert len(figures[0].axes[0].patches) == 9 + 15  # circles (none for Theta and pi) and arrows of figure 1
    draw_killer(figures[1], ideal)
    assert [text.get_text() for text in figures[1].axes[0].get_yticklabels()][-1] == "Z-norm"
    draw_broken(figures[2], ideal)
    draw_gain(figures[3], ideal)
    assert [text.get_text() for text in figures[3].axes[0].get_xticklabels()] == ["1", "2", "4"]
    draw_calibration(figures[4], checked | {"again": checked["drawn"]})
    assert [ax.get_title() for ax in figures[4].axes] == ["drawn", "again"]
