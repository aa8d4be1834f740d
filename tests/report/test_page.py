"""The page as a text: what is on it, how it is built, what it lets the browser do."""

import base64
import dataclasses
import hashlib
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from hostile import AS_SHOWN, NAMES, harmless, spoiled
from markup import elements

import evenscore.report
from evenscore import FileError, write_report
from evenscore.report.page import as_json, render
from evenscore.report.sections import content_of

STYLE = (Path(evenscore.report.__file__).parent / "template" / "style.css").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(text):
    return elements(text)


def tagged(found, *tags):
    return [element for element in found if element.tag in tags]


def by_id(found, name):
    (element,) = [element for element in found if element["id"] == name]
    return element


def table_of(found, caption):
    (table,) = [t for t in tagged(found, "table") if caption in tagged(t.children, "caption")[0].text]
    return [
        [cell.text for cell in tagged(found, "th", "td") if row in cell.ancestors]
        for row in tagged(found, "tr")
        if table in row.ancestors
    ]


def test_everything_that_the_user_asks_is_on_the_page(comparison, found):
    shown = by_id(found, "summary").text
    assert comparison.verdict.text in shown
    for section in ("results", "det", "bayes", "histograms", "conditions", "model", "cohorts", "data", "making"):
        assert by_id(found, section).tag == "section"
        assert [e for e in tagged(found, "a") if e["href"] == f"#{section}"]
    making = by_id(found, "making").text
    assert comparison.run.command in making
    for name, version in comparison.run.versions.items():
        assert name in making
        assert version in making


def test_the_table_of_results_has_every_method_with_figures_and_intervals(comparison, found):
    rows = [row for row in tagged(found, "tr") if by_id(found, "results-table") in row.ancestors]
    assert len(rows) == 1 + len(comparison.methods)
    for row, method in zip(rows[1:], comparison.methods, strict=True):
        cells = row.children
        assert cells[0]["data-value"] == method.name
        values = [float(cell["data-value"]) for cell in cells[1:6]]
        expected = [method.figures.values[name] for name in ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")]
        assert values == pytest.approx(expected)
        low, high = method.figures.interval("eer")
        assert f"{100 * low:.2f} to {100 * high:.2f}" in cells[1].text
        assert float(cells[6]["data-value"]) == pytest.approx(method.to_raw["cllr"].difference)
        assert float(cells[7]["data-value"]) == pytest.approx(method.to_best["cllr"].difference)
    used = [method.name == comparison.verdict.use for method in comparison.methods]
    assert [row["class"] == "recommended" for row in rows[1:]] == used
    assert ["recommended" in row.text for row in rows[1:]] == used
    assert f"Cllr of {comparison.verdict.use}" in by_id(found, "summary").text


def test_the_variances_of_the_score_model_are_told_in_numbers_and_words(comparison, found):
    variances = comparison["lgsm"].model.variances
    rows = {row[0]: row[1:] for row in table_of(found, "Where the variance")}
    assert rows["Unexplained (σ²)"][0] == f"{variances.sigma2[0]:#.4g}"
    part = variances.nu_enroll[0] / (variances.nu[0] + variances.sigma2[0])
    assert rows["Enrolment's hidden variable"][1] == f"{100 * part:.0f} %"
    assert (
        f"{100 * part:.0f} % of the variance of non-target scores comes from the enrolment"
        in by_id(found, "model").text
    )


def test_cohorts_and_data_are_counted(comparison, found):
    cohort = table_of(found, "Size of the cohorts")[1]
    assert cohort[:4] == ["zero", "40", "40", "20"]
    sides = {row[0]: row[1:] for row in table_of(found, "All conditions")}
    evaluation = comparison.data.evaluation
    assert sides["Evaluation"][0] == str(evaluation.speakers)
    assert sides["Evaluation"][4] == str(evaluation.targets)
    conditions = table_of(found, "in each phrase or condition alone")
    assert [row[0] for row in conditions] == ["Condition", "zero", "one"]


def test_the_page_has_landmarks_one_title_and_headings_in_order(found):
    assert tagged(found, "html")[0]["lang"] == "en"
    for tag in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(tagged(found, tag)) == 1
    levels = [int(e.tag[1]) for e in found if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    first_link = tagged(found, "a")[0]
    assert (first_link["class"], first_link["href"]) == ("skip", "#main")


def test_every_table_has_a_caption_and_scopes(found):
    tables = tagged(found, "table")
    assert len(tables) >= 10
    for table in tables:
        assert table.children[0].tag == "caption"
        assert any(e["role"] == "region" and e["tabindex"] == "0" for e in table.ancestors)
        headings = [e for e in tagged(found, "th") if table in e.ancestors]
        assert all(e["scope"] in ("col", "row") and e.text.strip() for e in headings)


def test_every_plot_is_described_and_has_its_numbers_as_a_table(found):
    plots = [e for e in found if e["class"] == "plot"]
    assert [plot["data-plot"] for plot in plots] == ["det", "bayes", "histograms"]
    for plot in plots:
        assert len(plot["aria-label"]) > 40
        figure = next(e for e in plot.ancestors if e.tag == "figure")
        assert [e for e in tagged(found, "table") if figure in e.ancestors]
    for control in tagged(found, "select"):
        assert [e for e in tagged(found, "label") if e["for"] == control["id"]]


def test_ids_are_unique_and_references_lead_somewhere(found):
    names = [e["id"] for e in found if e["id"]]
    assert len(set(names)) == len(names)
    for element in found:
        if element.tag == "a":
            assert element["href"][1:] in names
        if element["aria-labelledby"]:
            assert element["aria-labelledby"] in names


def test_the_policy_allows_exactly_the_scripts_and_styles_of_the_page(found):
    (policy,) = [e["content"] for e in tagged(found, "meta") if e["http-equiv"]]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    packed = by_id(found, "plotly-packed").text
    library = zlib.decompress(base64.b64decode(packed)).decode()
    scripts = [e.text for e in tagged(found, "script") if e["type"] is None]
    assert rules["script-src"].split() == [sha(text) for text in (*scripts, library)]
    assert rules["style-src"].split() == [sha(e.text) for e in tagged(found, "style")]
    assert "Plotly" in library


def sha(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_no_other_file_or_host(text, found):
    for element in found:
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in ("src", "href", "action", "data"):
                assert value.startswith(("#", "data:"))
    assert "//" not in text.replace("// ", "").split("<script")[0].replace("</", "")


def test_the_page_stays_small(page):
    assert page.stat().st_size < 3_000_000


def structure(page):
    return [(e.tag, sorted(e.attributes), len(e.ancestors)) for e in elements(page)]


def test_no_name_adds_an_element_or_an_attribute(comparison):
    evil, plain = (render(content_of(make(comparison))) for make in (spoiled, harmless))
    assert structure(evil) == structure(plain)
    found = elements(evil)
    shown = tagged(found, "body")[0].text
    for name in AS_SHOWN:
        assert name in shown
    data = json.loads(by_id(found, "plot-data").text)
    assert {system["name"] for system in data["systems"]} <= {*NAMES, "raw"}
    assert data["contributions"]["features"] == list(NAMES)


def test_json_cannot_leave_its_element():
    written = as_json({name: [name, None, 1.5] for name in NAMES})
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {name: [name, None, 1.5] for name in NAMES}
    with pytest.raises(ValueError, match="JSON"):
        as_json(float("nan"))


def test_a_comparison_with_little_in_it_has_a_page(comparison):
    bare = dataclasses.replace(
        comparison,
        methods=(dataclasses.replace(comparison.raw, conditions={}, to_best=comparison.raw.to_raw),),
        cohorts=(),
        run=dataclasses.replace(comparison.run, command=""),
    )
    found = elements(render(content_of(bare)))
    present = {e["id"] for e in tagged(found, "section")}
    assert present == {"summary", "results", "det", "bayes", "data", "making"}
    assert {e["href"][1:] for e in tagged(found, "a")} == present | {"main"}


def test_what_could_not_run_and_warnings_are_shown(comparison):
    spoken = dataclasses.replace(comparison, not_run={"az": "there are no scores"}, warnings=("only 3 speakers",))
    found = elements(render(content_of(spoken)))
    assert table_of(found, "Methods left out") == [["Method", "Reason"], ["az", "there are no scores"]]
    assert "One warning" in by_id(found, "summary").text
    assert "only 3 speakers" in by_id(found, "summary").text


def test_infinite_figures_are_written_as_such(comparison):
    raw = comparison.raw
    values = {**raw.figures.values, "cllr": float("inf")}
    broken = dataclasses.replace(raw, figures=dataclasses.replace(raw.figures, values=values))
    methods = tuple(broken if method.name == "raw" else method for method in comparison.methods)
    found = elements(render(content_of(dataclasses.replace(comparison, methods=methods))))
    (row,) = [e for e in tagged(found, "tr") if e.children[0]["data-value"] == "raw"]
    assert "∞" in row.children[4].text
    assert float(row.children[4]["data-value"]) == float("inf")


def test_a_report_is_written_whole_or_not_at_all(comparison, tmp_path):
    write_report(comparison, tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(FileError, match="its directory does not exist"):
        write_report(comparison, tmp_path / "no" / "mine.html")


def variables(block):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


LIGHT, DARK = (variables(block) for block in re.findall(r":root[^{]*\{([^}]*)\}", STYLE)[:2])


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_formula_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


def test_both_colour_schemes_have_the_same_names():
    assert LIGHT.keys() == DARK.keys()
    assert len(LIGHT) >= 20


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_enough_contrast(colours):
    texts = [(text, ground) for text in ("text", "muted", "accent") for ground in ("ground", "surface", "accent-soft")]
    texts += [(text, ground) for text in ("good", "bad") for ground in ("ground", "accent-soft")]
    texts += [("text", "warn-soft"), ("warn", "warn-soft"), ("target", "ground"), ("nontarget", "ground")]
    weak = [(a, b) for a, b in texts if contrast(colours[a], colours[b]) < 4.5]
    lines = [name for name in colours if name.startswith("system-")]
    weak += [(name, "ground") for name in lines if contrast(colours[name], colours["ground"]) < 3]
    assert weak == []
