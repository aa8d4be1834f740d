"""The page has the numbers of the comparison, is valid HTML that loads nothing, and no text of a user can change it."""

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtr, ndtri

from evenscore.comparison import METRICS, Diagnostic
from evenscore.metrics import bayes_error_curve, eer
from evenscore.report import render_report

sys.path.insert(0, str(Path(__file__).parent))
from markup import Reader

NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"' onmouseover='alert(3)' x=\"",
    '<a href="javascript:alert(4)">click</a>',
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; <b>bold</b> </style><style>*{}",
    "line\u2028end -->]]><!-- \x00 \ud800",
)


def spoiled(comparison, texts):
    """Return the comparison with other texts wherever they come from a user."""
    texts = cycle(texts)
    renamed = {one.name: f"{next(texts)}{place}" for place, one in enumerate(comparison.methods) if one.name != "raw"}
    conditions = {name: f"{next(texts)}{name}" for name in comparison.trials}
    methods = tuple(
        replace(
            method,
            name=renamed.get(method.name, "raw"),
            norm=next(texts),
            options={next(texts): next(texts)},
            notes=(next(texts),),
            conditions={conditions[name]: figures for name, figures in method.conditions.items()},
        )
        for method in comparison.methods
    )
    verdict = comparison.verdict
    parts = [replace(part, name=next(texts)) for part in comparison.data.training_conditions]
    return replace(
        comparison,
        methods=methods,
        failed={next(texts): next(texts)},
        verdict=replace(verdict, use=renamed.get(verdict.use, "raw"), sentences=(next(texts),)),
        diagnostics=(Diagnostic("size", next(texts), ({"trial": next(texts), "cohort": next(texts), "score": 1.0},)),),
        settings=replace(comparison.settings, calibration=next(texts), calibration_options={next(texts): next(texts)}),
        data=replace(comparison.data, training_conditions=tuple(parts), speakers_from=next(texts)),
        command=next(texts),
        time=next(texts),
        versions={next(texts): next(texts), "evenscore": next(texts)},
    )


def skeleton(page):
    """Return what of a page the texts must not change: elements, names of attributes, scripts and styles."""
    read = Reader(page)
    return [(tag, sorted(attributes)) for tag, attributes in read.elements], read.text("script", "style")


@given(st.lists(st.one_of(st.sampled_from(NAMES), st.text(min_size=1, max_size=20)), min_size=1, max_size=8))
def test_no_text_changes_what_the_page_is_made_of(comparison, texts):
    page = render_report(spoiled(comparison, texts))
    assert skeleton(page) == skeleton(render_report(spoiled(comparison, ["plain"])))
    page.encode()


def test_texts_are_shown_as_they_are(comparison):
    page = Reader(render_report(spoiled(comparison, list(NAMES))))
    for name in NAMES[:-1]:
        assert name in page.text()
    assert "line\ufffdend" in page.text()


def test_the_page_loads_nothing_and_runs_only_its_own_script(page):
    read = Reader(page)
    for _, attributes in read.elements:
        assert not {"src", "srcset", "data", "action", "style", "xlink:href"} & {*attributes}
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith(("#", "data:,"))
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a language
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|eval\(|innerHTML", page)
    (policy,) = [one["content"] for one in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_links_and_labels_point_to_something(page):
    read = Reader(page)
    ids = {attributes.get("id") for _, attributes in read.elements}
    assert all(one["href"][1:] in ids for one in read.all("a"))
    used = [one.get(name) for _, one in read.elements for name in ("aria-labelledby", "for")]
    assert {name for name in used if name} <= ids


def test_the_table_of_results_has_every_figure_and_its_interval(page, comparison):
    text = Reader(page).text()
    assert comparison.verdict.text in text
    for method in comparison.methods:
        for metric in METRICS:
            unit, digits = (100, 2) if metric == "eer" else (1, 3)
            value, ends = method.figures.value(metric), method.figures.interval(metric)
            shown = f"{unit * value:.{digits}f}{' %' if metric == 'eer' else ''}"
            assert f"{shown} {unit * ends.low:.{digits}f} to {unit * ends.high:.{digits}f}" in text
        if method.name != "raw":
            test = method.to_raw["cllr"]
            assert f"{test.difference:+.3f}".replace("-", "−") in text
        assert f"{method.training.cllr:.3f}" in text
        for found in method.conditions.values():
            assert f"{found.min_cllr:.3f}" in text


def test_the_rest_of_the_record_is_there(page, comparison):
    text = Reader(page).text()
    data = comparison.data
    assert f"Training {data.training.speakers} {data.training.enrolments} {data.training.tests}" in text
    assert f"Cohort {data.cohort_speakers} {data.cohort_enrolments} {data.cohort_tests}" in text
    for version in comparison.versions.values():
        assert version in text
    assert f"{comparison.settings.replicates}, seed {comparison.settings.seed}" in text
    model = comparison["lgsm"].model
    assert f"{model.mu[1]:#.4g}" in text


def curves(page, chart):
    """Return name, places and values of the curves of a chart."""
    section = page[page.index(f'<section id="{chart}"') :]
    section = section[: section.index("</section>")]
    paths = [one for one in Reader(section + "</section>").all("path") if "data-values" in one]
    places = [np.array([pair.split() for pair in one["d"][1:].split("L")], float) for one in paths]
    values = [np.array(json.loads(one["data-values"]), float) for one in paths]
    return list(zip([one["data-name"] for one in paths], places, values, strict=True))


def test_det_curves_are_the_error_rates_at_their_thresholds(page, comparison):
    found = curves(page, "det")
    assert [name for name, _, _ in found] == [method.name for method in comparison.methods]
    for (_, places, values), method in zip(found, comparison.methods, strict=True):
        nontarget, target = (method.llrs[comparison.labels == label] for label in (0, 1))
        misses, false_alarms, threshold = values
        assert len(places) == len(threshold)
        for at in range(1, len(threshold) - 1, 9):  # numbers have three digits
            low, high = threshold[at] * (1 + np.array([-6e-3, 6e-3]) * np.sign(threshold[at]))
            assert 0.993 * np.mean(target < low) <= misses[at] / 100 <= 1.007 * np.mean(target < high)
            assert 0.993 * np.mean(nontarget >= high) <= false_alarms[at] / 100 <= 1.007 * np.mean(nontarget >= low)
        inside = (misses > 1) & (misses < 60) & (false_alarms > 1) & (false_alarms < 60)
        x, y = ndtri(false_alarms[inside] / 100), ndtri(misses[inside] / 100)
        assert np.polyfit(x, places[inside, 0], 1)[0] == pytest.approx(
            -np.polyfit(y, places[inside, 1], 1)[0], rel=0.02
        )


def test_the_dot_of_a_det_curve_is_its_equal_error_rate(page, comparison):
    places = Reader(page).all("circle")
    (_, curve, values) = curves(page, "det")[0]
    slope, start = np.polyfit(ndtri(values[1][5:-5].clip(0.02, 99) / 100), curve[5:-5, 0], 1)
    assert ndtr((float(places[0]["cx"]) - start) / slope) == pytest.approx(
        eer(comparison.best.llrs, comparison.labels), rel=0.15
    )
    assert len(places) == len(comparison.methods)


def test_bayes_curves_are_actual_and_minimum_error_rates(page, comparison):
    found = curves(page, "bayes")
    assert len(found) == 2 * len(comparison.methods)
    for k, (name, places, values) in enumerate(found):
        method = comparison.methods[k // 2]
        rates = bayes_error_curve(method.llrs, comparison.labels, log_odds=np.linspace(-8, 8, 161))
        expected = rates.minimum if k % 2 else rates.actual
        assert name == f"{method.name}, {'minimum' if k % 2 else 'actual'}"
        assert values[1] == pytest.approx(expected, rel=6e-3)
        assert np.corrcoef(places[:, 0], values[0])[0, 1] == pytest.approx(1.0)


def test_histograms_have_area_1(page, comparison):
    found = curves(page, "histograms")
    assert len(found) == 2 * len(comparison.methods)
    for name, _, (score, density) in found:
        area = np.sum(np.diff(score) * density[1:])
        assert area == pytest.approx(1.0, abs=0.05), name


def test_a_page_stays_small_however_many_trials_there_are(comparison):
    many = replace(
        comparison,
        labels=np.tile(comparison.labels, 20),
        methods=tuple(replace(one, llrs=jittered(one.llrs), scores=jittered(one.scores)) for one in comparison.methods),
    )
    assert len(render_report(many)) < 250_000


def jittered(scores):
    rng = np.random.default_rng(0)
    return np.tile(scores, 20) + 0.1 * rng.normal(size=20 * scores.size)


def test_infinite_llrs_and_one_method_alone_are_shown(comparison):
    raw = comparison["raw"]
    llrs = raw.llrs.copy()
    llrs[:3], llrs[-3:] = -np.inf, np.inf
    alone = replace(
        comparison,
        methods=(replace(raw, llrs=llrs, scores=llrs, training=None, conditions={}),),
        verdict=replace(comparison.verdict, use="raw"),
    )
    read = Reader(render_report(alone))
    assert "By condition" not in read.text()
    assert not read.all("select")


def test_colours_have_enough_contrast_in_light_and_in_dark(page):
    light, dark = re.findall(r":root \{(.*?)\n *\}", page, re.DOTALL)[:2]
    for colours in (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in (light, dark)):
        ground = luminance(colours["ground"])
        for name, colour in colours.items():
            if name.startswith(("system", "target", "nontarget", "text", "muted", "good", "bad")):
                other = luminance(colour)
                assert (max(ground, other) + 0.05) / (min(ground, other) + 0.05) > 4, name


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return np.dot(
        [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts], (0.2126, 0.7152, 0.0722)
    )
