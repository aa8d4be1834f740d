"""What the figures show: the numbers of the metrics, under the names that were given."""

import subprocess
import sys

import numpy as np
import pytest
from drawn_figures import BOTH, ENROLL, LABELS, LLR, RAW, band, drawn
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from scipy.special import ndtri
from scipy.stats import norm, t

from evenscore import (
    BayesianCalibration,
    GaussianCalibration,
    InputError,
    LogisticCalibration,
    ScoreModel,
    TrialList,
    UnsupervisedCalibration,
    eer,
)
from evenscore.metrics import (
    bayes_error_curve,
    detection_costs,
    ece_curve,
    equal_error_rate,
    equalized_weights,
    roc,
    rocch,
    sort_scores,
)
from evenscore.plot import (
    plot_bayes_error,
    plot_det,
    plot_ece,
    plot_histograms,
    plot_norm_effect,
    plot_qq,
    plot_reliability,
    plot_tippett,
)
from evenscore.plot.style import PALETTE, percent, system_look

SYSTEM_PLOTS = [plot_det, plot_bayes_error, plot_ece, plot_tippett, plot_reliability]
SINGLE_PLOTS = [*SYSTEM_PLOTS, plot_histograms, plot_qq]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_data(line):
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


@pytest.mark.parametrize("plot", SINGLE_PLOTS)
def test_axes_are_made_or_taken_and_returned(plot):
    import matplotlib.pyplot as plt

    made = plot(LLR, LABELS)
    assert isinstance(made, Axes)
    assert made.figure in [plt.figure(number) for number in plt.get_fignums()]
    _, (left, right) = plt.subplots(1, 2)
    assert plot(LLR, LABELS, ax=right) is right
    assert not left.lines
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize("plot", SINGLE_PLOTS)
def test_sorted_scores_and_trial_lists_give_the_same_figure(plot):
    ids = [f"e{n}" for n in range(LLR.size)], ["t"] * LLR.size
    trials = TrialList.from_pairs(*ids, scores=LLR, labels=LABELS)
    axes = [drawn(lambda ax, s=s: plot(s, ax=ax)) for s in (trials, sort_scores(LLR, LABELS))]
    axes.append(drawn(lambda ax: plot(LLR, LABELS, ax=ax)))
    for ax in axes[1:]:
        for ours, theirs in zip(ax.lines, axes[0].lines, strict=True):
            assert np.array_equal(line_data(ours), line_data(theirs))


@pytest.mark.parametrize("plot", SYSTEM_PLOTS)
def test_names_are_shown_literally(plot):
    names = ["$x_1$", "_hidden", "<b>&amp;</b>", r"\alpha $", "a_b^c"]
    ax = drawn(lambda ax: plot({name: RAW + n for n, name in enumerate(names)}, LABELS, ax=ax))
    for name, text in zip(names, ax.get_legend().get_texts(), strict=False):
        assert text.get_text().startswith(name)
        assert not text.get_parse_math()
    ax.figure.canvas.draw()  # an unbalanced dollar would stop here


@pytest.mark.parametrize("plot", [*SINGLE_PLOTS, lambda *a, **k: plot_norm_effect(a[0], *a, **k)])
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        pytest.param([1.0, 2.0], [0, 1], marks=pytest.mark.slow),  # the least awkward ones
        ([2.0, 1.0], [0, 1]),
        ([0.0, 0.0, 0.0], [0, 1, 1]),
        ([-np.inf, -1.0, 1.0, np.inf], [0, 0, 1, 1]),
        pytest.param([-np.inf, np.inf], [0, 1], marks=pytest.mark.slow),  # nearly as those before them
        ([np.inf, 0.0, -np.inf, 1.0], [0, 0, 1, 1]),
        ([-1e4, 1e4, -1e300, 1e300], [0, 1, 0, 1]),
        (np.array([0.5, 1.5, 2.5, 1.0], dtype=np.float32), [0, 1, 1, -1]),
    ],
)
def test_awkward_scores_can_be_drawn(plot, scores, labels):
    ax = drawn(lambda ax: plot(scores, labels, ax=ax))
    ax.figure.set_layout_engine("none")  # which would draw everything twice
    ax.figure.canvas.draw()
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


@pytest.mark.parametrize("plot", SINGLE_PLOTS)
def test_one_class_alone_is_refused_before_anything_is_drawn(plot):
    import matplotlib.pyplot as plt

    with pytest.raises(InputError, match="0 target and 3 non-target"):
        plot([1.0, 2.0, 3.0], [0, 0, 0])
    assert not plt.get_fignums()


@pytest.mark.parametrize("plot", SYSTEM_PLOTS)
def test_a_bad_system_is_named_and_no_system_is_refused(plot):
    with pytest.raises(InputError, match="system 'b': scores"):
        plot({"a": LLR, "b": np.full(LLR.size, np.nan)}, LABELS)
    with pytest.raises(InputError, match="no system"):
        plot({}, LABELS)


@pytest.mark.parametrize("plot", SINGLE_PLOTS)
def test_weighted_trials_can_be_drawn(plot):
    weights = equalized_weights(LABELS, ENROLL % 3)
    trials = sort_scores(LLR, LABELS, weights=weights)
    ax, plain = drawn(lambda ax: plot(trials, ax=ax)), drawn(lambda ax: plot(LLR, LABELS, ax=ax))
    shown = [[*map(line_data, of.lines), *(patch.get_data()[:2] for patch in of.patches)] for of in (ax, plain)]
    assert not all(
        np.array_equal(one, other)
        for ours, theirs in zip(*shown, strict=False)
        for one, other in zip(ours, theirs, strict=True)
    )


def test_det_shows_the_corners_of_the_roc_and_the_points():
    points = [0.01, (0.05, 10, 1)]
    ax = drawn(lambda ax: plot_det(BOTH, LABELS, points=points, rule_of_30=False, ax=ax))
    lines = iter(ax.lines)
    for scores in BOTH.values():
        curve = roc(scores, LABELS)
        assert np.array_equal(line_data(next(lines)), (curve.p_fa, curve.p_miss))
        assert np.array_equal(line_data(next(lines)), ([eer(scores, LABELS)], [eer(scores, LABELS)]))
        for cost in detection_costs(scores, LABELS, points=points):
            assert np.array_equal(line_data(next(lines)), ([cost.min_p_fa], [cost.min_p_miss]))
            assert np.array_equal(line_data(next(lines)), ([cost.act_p_fa], [cost.act_p_miss]))
    assert texts(ax) == [
        *(f"{name} (EER {100 * eer(scores, LABELS):.2f} %)" for name, scores in BOTH.items()),
        "min (open), act DCF, p = 0.01",
        "min (open), act DCF, p = 0.05, costs 10:1",
    ]


def test_det_axes_are_probit_axes_with_percentages():
    ax = drawn(lambda ax: plot_det(LLR, LABELS, ax=ax))
    ax.set(xlim=(0.0005, 0.4), ylim=(0.0005, 0.4))
    ax.figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        ticks, labels = axis.get_majorticklocs(), [text.get_text() for text in axis.get_ticklabels()]
        assert [float(label) for label in labels] == pytest.approx([100 * tick for tick in ticks])
        assert {"0.1", "1", "10", "40"} <= set(labels)
    places = ax.transData.transform([[0.01, 0.01], [0.1, 0.1], [0.1, 0.01]])
    step = ndtri(0.1) - ndtri(0.01)
    left, bottom = ax.transData.transform((0.0005, 0.0005))
    right, _ = ax.transData.transform((0.4, 0.4))
    unit = (right - left) / (ndtri(0.4) - ndtri(0.0005))
    assert places[1] - places[0] == pytest.approx([step * unit] * 2)  # the same unit on both axes
    assert places[2][1] == pytest.approx(places[0][1])
    assert bottom < places[0][1]


def test_det_labels_do_not_overlap():
    for size in ((3, 3), (5, 4), (12, 10)):
        ax = drawn(lambda ax: plot_det(LLR, LABELS, ax=ax))
        ax.figure.set_size_inches(size)
        ax.set(xlim=(1e-6, 0.999), ylim=(1e-6, 0.999))
        ax.figure.canvas.draw()
        for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            boxes = [text.get_window_extent() for text in axis.get_ticklabels()]
            assert len(boxes) >= 4
            ends = np.array([(box.min[side], box.max[side]) for box in boxes])
            assert (ends[1:, 0] > ends[:-1, 1]).all()


def test_det_of_many_scores_is_thinned_to_what_can_be_seen():
    rng = np.random.default_rng(3)
    labels = np.arange(300_000) % 10 == 0
    scores = rng.normal(2.0 * labels)
    full = roc(scores, labels)
    p_fa, p_miss = line_data(drawn(lambda ax: plot_det(scores, labels, ax=ax)).lines[0])
    assert p_fa.size < 7000 < full.p_fa.size
    assert (p_fa[0], p_miss[0], p_fa[-1], p_miss[-1]) == (1, 0, 0, 1)
    inside = (full.p_miss > 0) & (full.p_fa > 0) & (full.p_miss < 1) & (full.p_fa < 1)
    path = ndtri(full.p_miss[inside]) - ndtri(full.p_fa[inside])
    kept = np.isin(full.p_fa[inside] + 2 * full.p_miss[inside], p_fa + 2 * p_miss)
    gaps = np.diff(path[kept])
    natural = np.diff(path).max()  # single errors at the ends
    assert gaps.max() <= natural + 0.02


def test_det_marks_the_rule_of_30_only_where_it_says_something():
    ax = drawn(lambda ax: plot_det(LLR, LABELS, ax=ax))
    assert texts(ax)[-1] == "30 misses or false alarms"
    ends = [line_data(line) for line in ax.lines[-2:]]
    assert ends[0][0] == pytest.approx([30 / np.count_nonzero(~LABELS)] * 2)
    assert ends[1][1] == pytest.approx([30 / np.count_nonzero(LABELS)] * 2)
    few = drawn(lambda ax: plot_det(LLR[:81], LABELS[:81], ax=ax))  # 2 targets
    assert len([line for line in few.lines if line.get_linestyle() == ":"]) <= 1
    off = drawn(lambda ax: plot_det(LLR, LABELS, rule_of_30=False, ax=ax))
    assert not any("30" in text for text in texts(off))


def test_det_bands_belong_to_systems():
    ax = drawn(lambda ax: plot_det(LLR, LABELS, band=band(), ax=ax))
    [shade] = ax.collections
    corners = shade.get_paths()[0].vertices
    assert {*band().low, *band().high} <= {*corners[:, 1]}
    with pytest.raises(InputError, match="one band for 2 systems"):
        plot_det(BOTH, LABELS, band=band())
    with pytest.raises(InputError, match="band for 'other'"):
        plot_det(BOTH, LABELS, band={"other": band()})


def test_cross_entropy_is_shown_over_powers_of_ten():
    ax = drawn(lambda ax: plot_ece(BOTH, LABELS, log_odds=np.log([0.1, 1.0, 10.0]), ax=ax))
    curve = ece_curve(next(iter(BOTH.values())), LABELS, log_odds=np.log([0.1, 1.0, 10.0]))
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [-1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve.actual)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), curve.minimum)
    assert ax.get_ylim()[1] <= 1.4


def test_bayes_error_shows_the_three_rates():
    grid = np.linspace(-6, 6, 25)
    ax = drawn(lambda ax: plot_bayes_error(BOTH, LABELS, log_odds=grid, points=[0.01, (0.01, 10, 1)], ax=ax))
    lines = iter(ax.lines)
    for scores in BOTH.values():
        curve = bayes_error_curve(scores, LABELS, log_odds=grid)
        assert np.array_equal(line_data(next(lines)), (grid, curve.actual))
        assert np.array_equal(line_data(next(lines)), (grid, curve.minimum))
    assert np.array_equal(line_data(next(lines)), (grid, np.ones(25)))
    assert next(lines).get_xdata()[0] == pytest.approx(np.log(0.01 / 0.99))
    assert next(lines).get_xdata()[0] == pytest.approx(np.log(0.1 / 0.99))
    assert texts(ax) == ["raw", "normalized", "actual", "minimum", "default"]
    assert tuple(ax.get_xlim()) == (-6, 6)


@pytest.mark.parametrize(
    ("model", "densities"),
    [
        (GaussianCalibration(mean=[-5, 5], variance=[4, 9]), (norm(-5, 2), norm(5, 3))),
        (UnsupervisedCalibration(mean=[-5, 5], variance=[4, 9], p_target=0.2), (norm(-5, 2), norm(5, 3))),
        (BayesianCalibration(mean=[-5, 5], scale2=[4, 9], df=[3, 5]), (t(3, -5, 2), t(5, 5, 3))),
        (ScoreModel(mu=[-5, 5], alpha=[[1], [2]], beta=[[1], [1]], sigma2=[2, 4]), (norm(-5, 2), norm(5, 3))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_histograms_show_the_densities_of_the_model(model, densities):
    ax = drawn(lambda ax: plot_histograms(LLR, LABELS, model=model, ax=ax))
    for line, density in zip(ax.lines, densities, strict=True):
        x, y = line_data(line)
        assert y == pytest.approx(density.pdf(x), rel=1e-9)


def test_histograms_count_the_scores_of_each_class():
    scores = np.concatenate((LLR, [np.inf, -np.inf]))
    labels = np.concatenate((LABELS, [True, False]))
    ax = drawn(lambda ax: plot_histograms(scores, labels, bins=7, ax=ax))
    assert texts(ax) == ["6321 non-targets", "81 targets"]
    for patch, side in zip(ax.patches[::2], (scores[~labels], scores[labels]), strict=True):
        heights, edges, _ = patch.get_data()
        counts, _ = np.histogram(side[np.isfinite(side)], edges)
        assert heights == pytest.approx(counts / side.size / np.diff(edges))
        assert counts.sum() >= 0.998 * side.size - 1
    with pytest.raises(InputError, match="at least 1"):
        plot_histograms(LLR, LABELS, bins=0)


def test_a_model_without_densities_is_refused():
    with pytest.raises(InputError, match="LogisticCalibration has no densities"):
        plot_histograms(LLR, LABELS, model=LogisticCalibration.fit(LLR, LABELS))


def quantiles(ax):
    """Return what is drawn of non-targets and of targets: quantiles of a Gaussian, and of the scores."""
    return [line_data(line) for line in ax.lines[:2]]


def test_qq_shows_the_quantiles_of_each_class():
    ax = drawn(lambda ax: plot_qq(LLR, LABELS, ax=ax))
    for (theory, values), label in zip(quantiles(ax), (False, True), strict=True):
        side = np.sort(LLR[label == LABELS])
        expected = (side - side.mean()) / side.std()
        where = norm.cdf(theory) * side.size - 0.5  # ranks
        assert np.allclose(where, where.round(), atol=1e-6)
        assert np.allclose(values, expected[where.round().astype(int)])
        assert where.round()[[0, -1]].tolist() == [0, side.size - 1]  # the ends are always there
        assert len(where) < 500
    assert texts(ax) == ["6320 non-targets", "80 targets", "Gaussian"]


def test_qq_takes_the_moments_of_a_model():
    own = quantiles(drawn(lambda ax: plot_qq(LLR, LABELS, ax=ax)))
    side = LLR[LABELS]
    model = ScoreModel(mu=[-5, 5], alpha=[[1], [2]], beta=[[1], [1]], sigma2=[8, 5])
    for known in (model, GaussianCalibration(mean=[-5, 5], variance=[10, 10])):
        (_, (_, values)) = quantiles(drawn(lambda ax, known=known: plot_qq(LLR, LABELS, model=known, ax=ax)))
        assert np.allclose(values * np.sqrt(10) + 5, own[1][1] * side.std() + side.mean())
    with pytest.raises(InputError, match="the classes of a BayesianCalibration are not Gaussian"):
        plot_qq(LLR, LABELS, model=BayesianCalibration.fit(LLR, LABELS))


def test_qq_of_weighted_trials_is_that_of_repeated_ones():
    times = 1 + np.arange(LLR.size) % 3
    weighted = quantiles(drawn(lambda ax: plot_qq(sort_scores(LLR, LABELS, weights=times), ax=ax)))
    repeated = quantiles(drawn(lambda ax: plot_qq(np.repeat(LLR, times), np.repeat(LABELS, times), ax=ax)))
    grid = np.linspace(-1.5, 1.5, 7)
    for one, other in zip(weighted, repeated, strict=True):
        assert np.allclose(np.interp(grid, *one), np.interp(grid, *other), atol=0.03)


def test_tippett_shows_the_share_at_or_above():
    ax = drawn(lambda ax: plot_tippett(LLR, LABELS, log10=True, ax=ax))
    for line, side in zip(ax.lines, (LLR[LABELS], LLR[~LABELS]), strict=False):
        x, y = line_data(line)
        assert line.get_drawstyle() == "steps-pre"
        for place, share in list(zip(x, y, strict=True))[1:-1:50]:
            assert share == pytest.approx(np.mean(side >= place * np.log(10) - 1e-9))
    wrong = 100 * np.mean(LLR[LABELS] < 0), 100 * np.mean(LLR[~LABELS] >= 0)
    assert texts(ax) == [f"targets, {wrong[0]:.2f} % < 0", f"non-targets, {wrong[1]:.2f} % ≥ 0"]
    assert ax.get_xlabel() == "Likelihood ratio (log10)"


def test_reliability_shows_the_blocks_of_the_hull():
    ax = drawn(lambda ax: plot_reliability(LLR, LABELS, ax=ax))
    hull = rocch(LLR, LABELS)
    x, y = line_data(ax.lines[1])
    finite = np.isfinite(hull.llr)
    assert x[::2][finite] == pytest.approx(hull.low[finite])
    assert x[1::2][finite] == pytest.approx(hull.high[finite])
    assert y[::2][finite] == pytest.approx(hull.llr[finite])
    assert (np.abs(y[::2][~finite]) > 100).all()
    posterior = drawn(lambda ax: plot_reliability(LLR, LABELS, p_target=0.5, ax=ax))
    assert line_data(posterior.lines[1])[1][::2] == pytest.approx(1 / (1 + np.exp(-hull.llr)))
    with pytest.raises(InputError, match="between 0 and 1"):
        plot_reliability(LLR, LABELS, p_target=1.0)


def test_norm_effect_draws_the_same_trials_each_time():
    ax = drawn(lambda ax: plot_norm_effect(RAW, LLR, LABELS, most=50, ax=ax))
    again = drawn(lambda ax: plot_norm_effect(RAW, LLR, LABELS, most=50, ax=ax))
    pairs = set(zip(RAW.tolist(), LLR.tolist(), strict=True))
    for ours, theirs in zip(ax.lines, again.lines, strict=True):
        assert np.array_equal(line_data(ours), line_data(theirs))
    for line in ax.lines[:2]:
        drawn_pairs = list(zip(*line_data(line), strict=True))
        assert len(drawn_pairs) == len(set(drawn_pairs)) == 50
        assert set(drawn_pairs) <= pairs
    assert texts(ax) == ["50 of 6320 non-targets", "50 of 80 targets", "threshold at the EER"]
    assert ax.lines[2].get_xdata()[0] == equal_error_rate(RAW, LABELS).threshold
    assert ax.lines[3].get_ydata()[0] == equal_error_rate(LLR, LABELS).threshold


def test_norm_effect_matches_trials_by_id():
    before = TrialList.from_pairs(["a", "b", "c"], ["x", "x", "x"], scores=[1.0, 2.0, 3.0], labels=[0, 1, 1])
    after = TrialList.from_pairs(["c", "b", "a"], ["x", "x", "x"], scores=[30.0, 20.0, 10.0])
    ax = drawn(lambda ax: plot_norm_effect(before, after, names=("$raw_", "_new"), ax=ax))
    assert np.array_equal(line_data(ax.lines[0]), ([1.0], [10.0]))
    assert np.array_equal(line_data(ax.lines[1]), ([2.0, 3.0], [20.0, 30.0]))
    assert ax.get_xlabel() == "$raw_ (EER 0.00 %)"
    ax.figure.canvas.draw()
    with pytest.raises(InputError, match=r"\('c', 'x'\) has a score before, but none after"):
        plot_norm_effect(before, after.select([1, 2]))
    with pytest.raises(InputError, match="two arrays of scores, or two trial lists"):
        plot_norm_effect([1.0, 2.0, 3.0], after, [0, 1, 1])
    with pytest.raises(InputError, match="at least 1"):
        plot_norm_effect(before, after, most=0)


def test_systems_look_different_in_colour_and_in_grey():
    looks = [(look["color"], str(look["linestyle"])) for look in map(system_look, range(35))]
    assert len(set(looks)) == 35
    grey = sorted(np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)) for colour in PALETTE)
    assert grey[-1] < 0.7  # all stand out on white
    assert len({looks[place][1] for place in range(5)}) == 5


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0.00 %"), (0.5, "50.00 %"), (1e-4, "0.01 %"), (9.94e-5, "0.0099 %"), (1e-9, "0.0000001 %")]
)
def test_percentages_keep_their_digits(rate, text):
    assert percent(rate) == text


def test_without_matplotlib_the_remedy_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import evenscore\n"
        "try: evenscore.plot.plot_det([0.0, 1.0], [0, 1])\n"
        "except evenscore.EvenscoreError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "figures need the package matplotlib; install it: pip install 'evenscore[plot]'\n"
