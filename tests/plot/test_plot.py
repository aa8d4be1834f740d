"""Figures show the right numbers: values are read back from their lines and legends."""

import dask.array as da
import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import logit
from scipy.stats import norm

from evenscore.data import Labels, ScoreMatrix, TrialList
from evenscore.errors import InputError
from evenscore.metrics import as_points, bootstrap_det, detection_costs, eer, min_cllr
from evenscore.plot import (
    figure_style,
    plot_bayes_error,
    plot_det,
    plot_ece,
    plot_histograms,
    plot_norm_effect,
    plot_qq,
    plot_reliability,
    plot_tippett,
)

mpl.use("agg")
KINDS = (plot_det, plot_bayes_error, plot_ece, plot_tippett, plot_reliability)  # of one system or of several
ALONE = (plot_histograms, plot_qq)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def llrs():
    """Return calibrated LLRs and their labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 8 == 0
    return rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels.astype(np.int8)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line(ax, number):
    return ax.get_lines()[number].get_xydata()


def rates(llr, labels, threshold):
    return np.mean(llr[labels == 1] < threshold), np.mean(llr[labels == 0] >= threshold)


def test_the_det_curve_passes_through_the_rates_of_every_threshold(llrs):
    ax = plot_det(*llrs)
    drawn = line(ax, 0)
    for threshold in (-3.0, -0.5, 0.0, 1.7):
        miss, false_alarm = rates(*llrs, threshold)
        on_level = drawn[np.abs(drawn[:, 1] - miss) < 1e-12]  # the curve is a staircase
        assert on_level[:, 0].min() - 1e-12 <= false_alarm <= on_level[:, 0].max() + 1e-12
    assert line(ax, 1)[0] == pytest.approx([eer(*llrs)] * 2)
    assert texts(ax)[0] == f"EER {100 * eer(*llrs):.2f} %"


def test_the_det_marks_the_decisions_at_an_operating_point(llrs):
    ax = plot_det({"a": llrs[0]}, llrs[1], points=[0.05, (0.01, 10, 1)])
    cost = detection_costs(*llrs, points=0.05)[0]
    assert line(ax, 2)[0] == pytest.approx([cost.min_p_fa, cost.min_p_miss])
    assert line(ax, 3)[0] == pytest.approx([cost.act_p_fa, cost.act_p_miss])
    assert texts(ax)[1:3] == ["min (open), act DCF, p = 0.05", "min (open), act DCF, p = 0.01, costs 10:1"]


def test_det_ticks_are_round_percentages_at_their_probits_with_one_unit_on_both_axes(llrs):
    ax = plot_det(*llrs)
    ax.figure.canvas.draw()
    shown = dict(zip((text.get_text() for text in ax.get_xticklabels()), ax.get_xticks(), strict=True))
    assert shown["10"] == pytest.approx(0.1)
    (x1, y1), (x2, y2) = ax.transData.transform([(0.02, 0.02), (0.3, 0.3)])
    assert x2 - x1 == pytest.approx(y2 - y1)


def test_the_det_curve_of_many_trials_and_of_a_dask_array_is_that_of_all_points():
    rng = np.random.default_rng(2)
    labels = (np.arange(150_000).reshape(300, 500) % 300 == 0).astype(np.int8)
    scores = rng.normal(3.0 * labels)
    ids = [f"e{k}" for k in range(300)], [f"t{k}" for k in range(500)]
    key = Labels.from_key(labels, enroll_ids=ids[0], test_ids=ids[1])
    expected = plot_det(as_points(scores, labels, merge=False), points=0.01)
    lazy = ScoreMatrix(da.from_array(scores, chunks=(70, 333)), *ids)
    for ax in (plot_det(scores, labels, points=0.01), plot_det(lazy, key, points=0.01)):
        assert texts(ax) == texts(expected)
        for one, other in zip(ax.get_lines(), expected.get_lines(), strict=True):
            assert one.get_xydata() == pytest.approx(other.get_xydata())


def test_a_det_band_lies_around_its_curve(llrs):
    speakers = np.arange(4000) % 40
    band = bootstrap_det(*llrs, enroll_speakers=speakers, test_speakers=speakers, replicates=20)
    ax = plot_det({"a": llrs[0], "b": -llrs[0]}, llrs[1], band={"a": band})
    (drawn,) = ax.collections
    assert drawn.get_paths()[0].vertices[:, 1].max() == pytest.approx(band.high.max())
    with pytest.raises(InputError, match="'c'"):
        plot_det({"a": llrs[0]}, llrs[1], band={"c": band})


def test_bayes_error_is_that_of_decisions_at_the_threshold_of_the_prior(llrs):
    ax = plot_bayes_error(*llrs, points=0.01)
    actual, minimum, default = (line(ax, k) for k in range(3))
    for odds in (-4.0, 0.0, 2.0):
        prior = 1 / (1 + np.exp(-odds))
        miss, false_alarm = rates(*llrs, -odds)
        expected = (prior * miss + (1 - prior) * false_alarm) / min(prior, 1 - prior)
        at = np.argmin(np.abs(actual[:, 0] - odds))
        assert actual[at] == pytest.approx([odds, expected])
        assert minimum[at, 1] <= actual[at, 1] + 1e-12
    assert default[:, 1] == pytest.approx(1.0)
    assert line(ax, 3)[0, 0] == pytest.approx(logit(0.01))


def test_ece_at_even_odds_is_cllr_which_stands_in_the_legend(llrs):
    ax = plot_ece({"a": llrs[0], "b": 3 * llrs[0]}, llrs[1])
    for k, name, scale in ((0, "a", 1), (1, "b", 3)):
        llr, target = scale * llrs[0], llrs[1] == 1
        losses = np.log2(1 + np.exp(-llr[target])).mean(), np.log2(1 + np.exp(llr[~target])).mean()
        drawn = line(ax, 2 * k)
        assert drawn[np.argmin(np.abs(drawn[:, 0])), 1] == pytest.approx(np.mean(losses))
        assert texts(ax)[k] == f"{name} (Cllr {np.mean(losses):.3f}, min {min_cllr(*llrs):.3f})"


def test_ece_is_scaled_to_the_systems(llrs):
    good = np.where(llrs[1] == 1, 6.0, -6.0) + 0.5 * llrs[0]
    ax = plot_ece(good, llrs[1])
    assert ax.get_ylim()[1] < 2 * line(ax, 0)[:, 1].max() < 0.3


def test_tippett_curves_are_shares_at_or_above_and_end_with_the_data(llrs):
    llr, labels = llrs
    ax = plot_tippett({"a": llr, "b": llr - 1}, labels)
    for k, (values, label) in enumerate([(llr, 1), (llr, 0), (llr - 1, 1), (llr - 1, 0)]):
        side, drawn = values[labels == label], line(ax, k)
        assert (drawn[0, 0], drawn[-1, 0]) == (side.min(), side.max())
        for x, share in drawn[:: len(drawn) // 7]:
            assert share == pytest.approx(np.mean(side >= x))
    miss, false_alarm = rates(llr - 1, labels, 0.0)
    assert texts(ax)[1] == f"b ({100 * miss:.2f} % of targets < 0,\n{100 * false_alarm:.2f} % of non-targets ≥ 0)"
    base10 = plot_tippett(llr, labels, log10=True)
    assert line(base10, 0)[0, 0] == pytest.approx(llr[labels == 1].min() / np.log(10))


def test_reliability_of_calibrated_llrs_has_the_diagonal_in_its_band(llrs):
    ax = plot_reliability(*llrs)
    band = ax.collections[0].get_paths()[0]
    middle = [(x, x) for x in np.linspace(-2, 2, 9)]
    assert np.mean(band.contains_points(middle)) > 0.8
    overconfident = plot_reliability(4 * llrs[0], llrs[1]).collections[0].get_paths()[0]
    assert not overconfident.contains_points([(4.0, 4.0), (-4.0, -4.0)]).any()


def test_reliability_after_pav_follows_the_diagonal(llrs):
    hull = as_points(*llrs).hull
    at = np.searchsorted(hull.low, llrs[0], side="right") - 1
    ax = plot_reliability(hull.llr[at].clip(-9, 9), llrs[1])
    drawn = line(ax, 0)
    inside = np.abs(drawn[:, 1]) < 8
    assert drawn[inside, 0] == pytest.approx(drawn[inside, 1])


def test_reliability_as_probabilities_stays_between_0_and_1(llrs):
    ax = plot_reliability(*llrs, p_target=0.2)
    assert ax.get_xlim() == (0.0, 1.0)
    drawn = line(ax, 0)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    with pytest.raises(InputError, match="p_target"):
        plot_reliability(*llrs, p_target=1.0)


def test_histograms_have_area_1_and_the_gaussians_of_a_model(llrs):
    ax = plot_histograms(*llrs, moments=([-2.0, 2.0], [4.0, 4.0]))
    heights, edges, _ = ax.patches[1].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1.0, abs=0.002)
    middle = (edges[1:] + edges[:-1]) / 2
    assert heights == pytest.approx(norm.pdf(middle, -2, 2), abs=0.04)
    drawn = line(ax, 1)
    assert drawn[:, 1] == pytest.approx(norm.pdf(drawn[:, 0], 2, 2))


def test_gaussian_scores_follow_the_diagonal_of_a_qq_plot(llrs):
    for drawn in (line(plot_qq(*llrs), k) for k in (0, 1)):
        inside = np.abs(drawn[:, 0]) < 2
        assert drawn[inside, 0] == pytest.approx(drawn[inside, 1], abs=0.2)
    squared = line(plot_qq(np.exp(llrs[0] / 2), llrs[1]), 0)
    assert squared[-1, 1] > squared[-1, 0] + 1


def test_the_effect_of_a_norm_matches_tables_by_id(llrs):
    llr, labels = llrs[0][:60], llrs[1][:60]
    rng = np.random.default_rng(1)
    enroll, test = [f"e{k % 6}" for k in range(60)], [f"t{k // 6}" for k in range(60)]
    before = TrialList(enroll, test, scores=llr, labels=labels)
    order = rng.permutation(60)
    after = TrialList([enroll[k] for k in order], [test[k] for k in order], scores=2 * llr[order])
    key = Labels.from_trials(before)
    figures = [plot_norm_effect(before, after), plot_norm_effect(llr, 2 * llr, labels)]
    for ax in (*figures, plot_norm_effect(before.to_matrix(), after.to_matrix(), key)):
        nontargets, targets = line(ax, 0), line(ax, 1)
        assert np.sort(targets[:, 0]) == pytest.approx(np.sort(llr[labels == 1]))
        assert nontargets[:, 1] == pytest.approx(2 * nontargets[:, 0])
        assert ax.get_xlabel() == f"Score before (EER {100 * eer(llr, labels):.2f} %)"
    with pytest.raises(InputError, match="none after"):
        plot_norm_effect(before, after.select(np.arange(50)))


@pytest.mark.parametrize("draw", [*KINDS, *ALONE])
def test_tables_give_the_figure_of_their_arrays(draw, llrs):
    scores, labels = llrs[0].reshape(40, 100), llrs[1].reshape(40, 100)
    ids = [f"e{k}" for k in range(40)], [f"t{k}" for k in range(100)]
    matrix = ScoreMatrix(scores, *ids)
    key = Labels.from_key(labels, enroll_ids=ids[0], test_ids=ids[1])
    expected = draw(*llrs)
    for found in (draw(matrix, key), draw(matrix.to_trials(key)), draw(as_points(*llrs, merge=False))):
        assert texts(found) == texts(expected)
        for one, other in zip(found.get_lines(), expected.get_lines(), strict=True):
            assert one.get_xydata() == pytest.approx(other.get_xydata())


@pytest.mark.parametrize("draw", KINDS)
def test_names_are_shown_as_they_are_and_systems_look_different(draw, llrs):
    names = ["$x^2$", "_hidden", "a\\b"]
    ax = draw({name: llrs[0] + shift for shift, name in enumerate(names)}, llrs[1])
    ax.figure.canvas.draw()
    for name, text in zip(names, texts(ax), strict=False):
        assert text.startswith(name)
    looks = {(one.get_color(), str(one.get_linestyle())) for one in ax.get_lines()}
    assert len({color for color, _ in looks}) >= 3


@pytest.mark.parametrize("draw", [*KINDS, *ALONE])
def test_colours_stand_out_on_a_light_and_on_a_dark_ground(draw, llrs):
    for dark in (False, True):
        with figure_style(dark=dark):
            ax = draw(*llrs)
        ground = luminance(ax.get_facecolor())
        for one in ax.get_lines():
            other = luminance(mpl.colors.to_rgb(one.get_color()))
            assert (max(ground, other) + 0.05) / (min(ground, other) + 0.05) > 2.5


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@given(st.data())
def test_awkward_scores_are_drawn(data):
    draw = data.draw(st.sampled_from([*KINDS, *ALONE]))
    number = st.one_of(st.sampled_from([0.0, -np.inf, np.inf, 1e30, -1e30]), st.floats(-50, 50))
    scores = np.array(data.draw(st.lists(number, min_size=2, max_size=12)))
    labels = np.arange(scores.size) % 2
    ax = draw(scores, labels)
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_xlim()).all()


def test_the_system_that_cannot_be_drawn_is_named(llrs):
    with pytest.raises(InputError, match="system 'b'"):
        plot_det({"a": llrs[0], "b": llrs[0][:-1]}, llrs[1])
    with pytest.raises(InputError, match="at least one"):
        plot_det({}, llrs[1])


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_file_without_margins(ending, llrs, tmp_path):
    from evenscore.files import save_figure

    files = [tmp_path / f"{k}.{ending}" for k in (1, 2)]
    for file in files:
        save_figure(plot_det(*llrs).figure, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    if ending == "png":
        picture = mpl.image.imread(files[0])[..., :3]
        inked = np.argwhere((picture < 0.9).any(axis=2))
        assert (inked.min(axis=0) < 40).all()
        assert (np.array(picture.shape[:2]) - inked.max(axis=0) < 40).all()
