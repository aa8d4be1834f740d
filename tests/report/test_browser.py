"""The page in a real browser: nothing complains, and the controls do what they say."""

import shutil

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1280,1200"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no browser (Debian: apt-get install chromium chromium-driver)")
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page, encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.get(file.as_uri())
    yield found
    found.quit()


def test_the_browser_has_no_complaints_and_controls_work(browser, comparison):
    def all_of(selector):
        return browser.find_elements("css selector", selector)

    def click(element):
        browser.execute_script("arguments[0].click()", element)

    click(all_of("#results-table th button")[1])
    rows = [row.text.split("\n")[0] for row in all_of("#results-table tbody th")]
    assert rows == [one.name for one in sorted(comparison.methods, key=lambda one: one.figures.value("eer"))]
    click(all_of("#det .legend input")[1])
    assert [one.get_dom_attribute("data-system") for one in all_of("#det g.off[data-system]")] == ["1"]
    whole = all_of(".det svg svg")[0].get_dom_attribute("viewBox")
    click(all_of("#det .controls button")[0])
    assert all_of(".det svg svg")[0].get_dom_attribute("viewBox") != whole
    click(all_of("#det .controls button")[2])
    assert all_of(".det svg svg")[0].get_dom_attribute("viewBox") == whole
    dot = all_of("#det .dot")[0]
    browser.execute_script(
        "const box = arguments[0].getBoundingClientRect();"
        "arguments[0].dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: box.x, clientY: box.y}));",
        dot,
    )
    assert [one.get_property("textContent").split(":")[0] for one in all_of(".det .tip:not([hidden])")]
    wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    assert browser.get_log("browser") == []
