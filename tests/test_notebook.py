"""What records show of themselves in notebooks: names that look like markup stay names."""

import numpy as np
import pytest

from evenscore import LabelledBlocks, ScoreMatrix, ScoreModel, TrialList, compare, fit_score_model, simulate
from evenscore.comparison import Method

EVIL = "<script>alert('1')</script>&"
MODEL = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])


def speakers(group, count=8):
    return [f"{group}{number // 2}" for number in range(2 * count)]


@pytest.fixture(scope="module")
def views():
    matrix = ScoreMatrix([[1.23456, np.nan]], [EVIL], [EVIL + "a", "b"], missing="nan")
    large = ScoreMatrix(np.ones((7, 11)), [f"e{n}" for n in range(7)], [f"t{n}" for n in range(11)])
    trials = TrialList.from_pairs(
        [EVIL] * 7, [f"t{n}" for n in range(7)], scores=np.arange(7.0), labels=[1, 0, -1] * 2 + [0]
    )
    training = LabelledBlocks.own_cohort(*simulate(MODEL, speakers("a"), speakers("a"), seed=1))
    evaluation = LabelledBlocks.own_cohort(*simulate(MODEL, speakers("b"), speakers("b"), seed=2))
    return {
        "matrix": matrix,
        "large": large,
        "lazy": large.in_tiles(64, (3, 3)),
        "trials": trials,
        "model": MODEL,
        "fit": fit_score_model(simulate(MODEL, speakers("a"), speakers("a"), seed=1), dim=1),
        "comparison": compare(training, evaluation, [Method(EVIL, "s")], bootstrap=10),
    }


@pytest.mark.parametrize("name", ["matrix", "large", "lazy", "trials", "model", "fit", "comparison"])
def test_names_are_escaped(views, name):
    shown = views[name]._repr_html_()
    assert shown.startswith("<table>")
    assert shown.endswith("</table>")
    assert "<script" not in shown
    assert ("&lt;script&gt;" in shown) == (name in ("matrix", "trials", "comparison"))


def test_the_first_scores_are_shown(views):
    matrix, large, trials = (views[name]._repr_html_() for name in ("matrix", "large", "trials"))
    assert "<td>1.235</td><td></td>" in matrix
    assert large.count("<tr>") == 1 + 5 + 1
    assert "<th>t7</th><th>…</th>" in large
    assert "<td>t1</td><td>1</td><td>nontarget</td>" in trials
    assert "<td>2</td><td>unknown</td>" in trials
    assert "t5" not in trials


def test_fits_and_comparisons_show_what_the_command_line_shows(views):
    fit, comparison = views["fit"], views["comparison"]
    assert "<th>variance</th>" in fit._repr_html_()
    assert "16 x" not in fit._repr_html_()
    assert f"after {fit.n_iter} iterations" in fit._repr_html_()
    assert f"{comparison.raw.figures.values['cllr']:.3f}</td>" in comparison._repr_html_()
    assert (
        f"<th>{comparison.verdict.use}, recommended</th>" in comparison._repr_html_() or comparison.verdict.use == EVIL
    )
