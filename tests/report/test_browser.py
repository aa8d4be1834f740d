"""The page in a browser: it draws, sorts, toggles, zooms, prints, fits a phone, and nothing of it breaks out."""

import base64
import json
import time

import pytest
from hostile import AS_SHOWN, NAMES, spoiled

from evenscore import write_report

#: A browser is slow to start, and not on every machine: `make test` does without, a release may not.
pytestmark = pytest.mark.slow

READY = "return document.documentElement.dataset.ready === 'yes'"
NAMED_ROWS = "return [...document.querySelectorAll('#results-table tbody tr')].map(r => r.cells[0].dataset.value)"
SORTED = "return [...document.querySelectorAll('#results-table thead th')].map(h => h.getAttribute('aria-sort'))"
SHOWN = "return document.querySelector('[data-plot=det]').data.filter(t => t.visible).map(t => t.meta)"
RANGE = "return document.querySelector('[data-plot=det]').layout.xaxis.range"
SVG_GROUND = "return document.querySelector('[data-plot=det] .main-svg').style.backgroundColor"


def until(browser, script, *arguments, seconds=40):
    """Wait until a script returns something true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = browser.execute_script(script, *arguments)
        if value:
            return value
        time.sleep(0.05)
    return pytest.fail(f"waited in vain for: {script}")


def console(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def opened(browser, path):
    browser.get("about:blank")
    console(browser)
    browser.get_log("performance")
    browser.get(path.as_uri())
    until(browser, READY)
    return browser


@pytest.fixture(scope="module")
def shown(browser, page):
    """Show the page to the tests of this module, which leave it as they found it."""
    return opened(browser, page)


def seen_by(browser, width, height, mobile=False, **media):
    """Give the browser another screen or other wishes."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture
def desktop(shown):
    yield shown
    shown.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def key(browser, name):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(browser).send_keys(getattr(Keys, name, name)).perform()


def test_it_opens_without_complaints_and_without_the_network(shown, page):
    requests = [
        message["params"]["request"]["url"]
        for entry in shown.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert page.as_uri() in requests
    assert [url for url in requests if url != page.as_uri() and not url.startswith("data:")] == []
    assert console(shown) == []
    assert shown.execute_script("return document.querySelectorAll('.plot .main-svg').length") >= 3
    assert shown.execute_script("return document.querySelectorAll('.plot .waiting').length") == 0


def test_the_det_axes_have_percentages_at_their_probits(shown):
    axis = shown.execute_script(
        "const a = document.querySelector('[data-plot=det]').layout.xaxis; return [a.tickvals, a.ticktext]"
    )
    places = dict(zip(axis[1], axis[0], strict=True))
    assert places["10"] == pytest.approx(-1.28155, abs=1e-4)
    assert places["1"] == pytest.approx(-2.32635, abs=1e-4)


def test_headings_sort_the_table_by_click(shown, comparison):
    ranked = [method.name for method in comparison.methods]
    assert shown.execute_script(NAMED_ROWS) == ranked
    assert shown.execute_script(SORTED)[4] == "ascending"
    button = shown.find_elements("css selector", "#results-table thead button")[1]
    button.click()
    by_eer = sorted(comparison.methods, key=lambda method: method.figures.values["eer"])
    assert shown.execute_script(NAMED_ROWS) == [method.name for method in by_eer]
    assert shown.execute_script(SORTED) == [None, "ascending", *[None] * 8]
    button.click()
    assert shown.execute_script(NAMED_ROWS) == [method.name for method in reversed(by_eer)]
    assert shown.execute_script(SORTED)[1] == "descending"


def test_headings_sort_the_table_by_keyboard_and_say_so(shown, comparison):
    shown.execute_script("document.querySelector('#results-table thead button').focus()")
    key(shown, "ENTER")
    assert shown.execute_script(NAMED_ROWS) == sorted(method.name for method in comparison.methods)
    assert shown.execute_script(SORTED)[0] == "ascending"
    assert (
        shown.execute_script("return document.getElementById('sorted').textContent") == "Sorted by Method, ascending."
    )
    for _ in range(4):
        key(shown, "TAB")
    key(shown, "SPACE")
    assert shown.execute_script(NAMED_ROWS) == [method.name for method in comparison.methods]
    assert shown.execute_script(SORTED)[4] == "ascending"
    outline = "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]"
    assert shown.execute_script(outline) == ["solid", "3px"]


def test_a_system_is_toggled_with_the_mouse_and_with_the_keyboard(shown, comparison):
    number = len(comparison.methods)
    assert shown.execute_script(SHOWN) == [place for place in range(number) for _ in "cd"]
    label, box = (
        shown.find_element("css selector", f".legend[data-for=det] label {part}") for part in ("bdi", "input")
    )
    label.click()
    until(shown, f"return !{SHOWN[7:]}.includes(0)")
    assert not box.is_selected()
    shown.execute_script("arguments[0].focus()", box)
    key(shown, "SPACE")
    assert box.is_selected()
    until(shown, f"return {SHOWN[7:]}.includes(0)")
    assert console(shown) == []


def test_zoom_by_button_key_and_mouse(shown):
    from selenium.webdriver.common.action_chains import ActionChains

    whole = shown.execute_script(RANGE)
    buttons = {e.text: e for e in shown.find_elements("css selector", ".controls[data-for=det] button")}
    buttons["Zoom in"].click()
    width = whole[1] - whole[0]
    closer = until(shown, f"const r = {RANGE[7:]}; return r[1] - r[0] < {0.7 * width} && r")
    assert closer[1] - closer[0] == pytest.approx(0.6 * width, rel=1e-3)
    shown.execute_script("document.querySelector('[data-plot=det]').focus()")
    key(shown, "ARROW_RIGHT")
    moved = until(shown, f"const r = {RANGE[7:]}; return r[0] > {closer[0]} && r")
    assert moved[1] - moved[0] == pytest.approx(closer[1] - closer[0])
    buttons["Whole plot"].click()
    assert until(shown, f"const r = {RANGE[7:]}; return r[0] === {whole[0]} && r") == whole
    area = shown.find_element("css selector", "[data-plot=det] .nsewdrag")
    ActionChains(shown).move_to_element(area).click_and_hold().move_by_offset(120, 90).release().perform()
    until(shown, f"const r = {RANGE[7:]}; return r[1] - r[0] < {0.5 * width}")
    ticks = shown.execute_script("return document.querySelector('[data-plot=det]').layout.xaxis.tickvals")
    low, high = shown.execute_script(RANGE)
    assert all(low <= tick <= high for tick in ticks)
    shown.execute_script("document.querySelector('[data-plot=det]').focus()")
    key(shown, "0")
    until(shown, f"return {RANGE[7:]}[0] === {whole[0]}")
    assert console(shown) == []


def test_hovering_tells_rates_and_the_method(shown, comparison):
    shown.execute_script(
        "Plotly.Fx.hover(document.querySelector('[data-plot=det]'), [{curveNumber: 0, pointNumber: 5}])"
    )
    label = until(shown, "return document.querySelector('[data-plot=det] .hoverlayer')?.textContent")
    assert label.startswith(comparison.best.name)
    assert "false alarms" in label
    shown.execute_script("Plotly.Fx.unhover(document.querySelector('[data-plot=det]'))")


def test_the_histogram_follows_the_chosen_method(shown, comparison):
    from selenium.webdriver.support.ui import Select

    chosen = Select(shown.find_element("id", "histogram-system"))
    assert chosen.first_selected_option.text == comparison.best.name
    other = comparison.methods[1].name
    chosen.select_by_visible_text(other)
    heading = "return document.querySelector('[data-plot=histograms]').layout.annotations[1].text"
    until(shown, f"{heading} === 'after: {other}'")
    chosen.select_by_visible_text(comparison.best.name)


def test_dark_mode_reaches_the_plots(desktop):
    light = desktop.execute_script(SVG_GROUND)
    seen_by(desktop, 1280, 900, prefers_color_scheme="dark")
    ground = desktop.execute_script("return getComputedStyle(document.body).backgroundColor")
    until(desktop, f"{SVG_GROUND} === '{ground}'")
    assert light != ground
    seen_by(desktop, 1280, 900, prefers_color_scheme="light")
    until(desktop, f"{SVG_GROUND} === '{light}'")
    assert console(desktop) == []


@pytest.mark.parametrize("mobile", [True, False])
def test_a_phone_needs_no_sideways_scrolling(desktop, mobile):
    seen_by(desktop, 360, 740, mobile=mobile)
    until(desktop, "return document.querySelector('[data-plot=det]').layout.width < 360")
    assert desktop.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    boxes = "return [...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth).length"
    assert desktop.execute_script(boxes) > 0
    assert console(desktop) == []


def test_less_motion_on_request(desktop):
    behaviour = "return getComputedStyle(document.documentElement).scrollBehavior"
    for wish, answer in (("no-preference", "smooth"), ("reduce", "auto")):
        seen_by(desktop, 1280, 900, prefers_reduced_motion=wish)
        assert desktop.execute_script(behaviour) == answer


def test_it_prints_plots_without_buttons(desktop):
    seen_by(desktop, 1280, 900, prefers_color_scheme="dark")
    desktop.execute_script(
        "addEventListener('beforeprint', () => { window.printed = {"
        " dark: getComputedStyle(document.body).backgroundColor,"
        " width: document.querySelector('[data-plot=det]').layout.width }; })"
    )
    printed = base64.b64decode(desktop.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") >= 3
    facts = desktop.execute_script("return window.printed")
    assert facts["dark"] == "rgb(255, 255, 255)"
    assert facts["width"] <= 640
    desktop.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return ['.controls', '.skip', '.contents'].map(s => getComputedStyle(document.querySelector(s)).display)"
    assert desktop.execute_script(hidden) == ["none"] * 3
    assert (
        desktop.execute_script("return document.querySelector('.plot .main-svg').getBoundingClientRect().width") > 300
    )
    desktop.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_hostile_names_do_nothing_and_are_shown_as_they_are(browser, comparison, tmp_path):
    path = tmp_path / "<b>&\"'.html"
    write_report(spoiled(comparison), path)
    opened(browser, path)
    for system in range(len(comparison.methods)):
        hover = (
            "Plotly.Fx.hover(document.querySelector('[data-plot=det]'), [{curveNumber: arguments[0], pointNumber: 0}])"
        )
        browser.execute_script(hover, 2 * system)
    assert console(browser) == []
    strangers = (
        "return document.querySelectorAll('img, iframe, object, embed, b, svg a, [onerror], [onmouseover]').length"
    )
    assert browser.execute_script(strangers) == 0
    assert browser.execute_script("return document.scripts.length") == 4  # data, packed, ours, Plotly
    text = browser.execute_script("return document.body.textContent")
    assert all(name in text for name in AS_SHOWN)
    ticks = "return [...document.querySelectorAll('[data-plot=contributions] .ytick text')].map(t => t.textContent)"
    labels = browser.execute_script(ticks)
    assert NAMES[0] in labels
    assert NAMES[4] in labels
    assert NAMES[5].replace("\u202e", "\ufffd") in labels
    assert NAMES[7][:59] + "…" in labels
    seen_by(browser, 360, 740, mobile=True)
    until(browser, "return document.querySelector('[data-plot=det]').layout.width < 360")
    assert browser.execute_script("return document.documentElement.scrollWidth") == 360
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
