"""The page in a browser: what it draws, what it lets one do, and what it must not do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import run_reports
from chromium import BROWSER, DRIVER, ENTER, MISSING, SPACE, TAB, Chromium, chromium
from run_reports import HOSTILE

from tfx_edge.report.page import render_page
from tfx_edge.schemas import RunReport

pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)

METRICS = "#run-metrics > .table table"
COLUMN = f"return [...document.querySelectorAll('{METRICS} tbody tr')].filter(r => !r.hidden).map(r => r.cells[arguments[0]].textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def show(browser: Chromium, folder: Path, run: RunReport | None = None, scheme: str = "light") -> None:
    page = folder / "report.html"
    page.write_text(render_page(run or run_reports.whole_run()))
    browser.media(scheme)
    browser.open(page)


def test_every_chart_is_drawn_with_a_table_beside_it(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    figures = browser.run(
        """return [...document.querySelectorAll('figure')].map(f => {
            const svg = f.querySelector('svg'), box = svg.getBoundingClientRect();
            const marks = [...svg.querySelectorAll('[role=graphics-symbol]')].filter(m => m.getAttribute('aria-roledescription') !== 'axis');
            const drawn = marks.filter(m => { const b = m.getBoundingClientRect(); return b.width + b.height > 0; });
            return [box.width, box.height, drawn.length, f.querySelectorAll('details table tbody tr').length, svg.getAttribute('aria-label')];
        })"""
    )
    assert len(figures) == 12
    for width, height, marks, rows, label in figures:
        assert width > 100 and height > 40 and marks > 0 and rows > 0 and label, figures
    images = browser.run("return [...document.images].map(i => [i.naturalWidth, i.alt])")
    assert images == [[8, "feature digit of an example with label 0"]] * 4


@pytest.mark.parametrize("name", ["digit", HOSTILE], ids=["plain", "hostile"])
def test_no_request_leaves_the_page_nothing_is_in_the_console_and_no_name_runs(browser: Chromium, folder: Path, name: str) -> None:
    show(browser, folder, run_reports.whole_run(name, labels=(name, f"{name}2", f"{name}3"), reasons=(name,)))
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true); scrollTo(0, 1e6)")
    browser.command("Page.printToPDF")
    assert browser.run("return [window.hit ?? null, document.querySelectorAll('script').length]") == [None, 1]
    assert browser.console == []
    others = [url for url in browser.requests if not url.startswith("data:")]
    assert others == [(folder / "report.html").as_uri()]


def test_a_click_on_a_column_sorts_by_number_up_then_down_and_says_so(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    header = f"document.querySelectorAll('{METRICS} th')[arguments[0]]"
    for expected in ("ascending", "descending"):
        browser.run(f"{header}.querySelector('button').click()", 5)
        values = [float(text) for text in browser.run(COLUMN, 5)]
        assert values == sorted(values, reverse=expected == "descending") and len(set(values)) == 11
        assert browser.run(f"return {header}.getAttribute('aria-sort')", 5) == expected
    browser.run(f"{header}.querySelector('button').click()", 1)
    slices = browser.run(COLUMN, 1)
    assert slices == ["digit=0", "digit=1", *(f"digit={i}" for i in range(2, 10)), "Overall"]
    assert browser.run(f"return document.querySelectorAll('{METRICS} th[aria-sort]').length") == 1


def test_what_is_missing_sorts_last_either_way(browser: Chromium, folder: Path) -> None:
    run = run_reports.whole_run()
    metrics = tuple(
        m.model_copy(update={"difference": None, "candidate": None}) if i == 4 else m for i, m in enumerate(run.models[0].report.metrics)
    )
    report = run.models[0].report.model_copy(update={"metrics": metrics})
    show(browser, folder, run.model_copy(update={"models": (run.models[0].model_copy(update={"report": report}),)}))
    for _ in range(2):
        browser.run(f"document.querySelectorAll('{METRICS} th button')[5].click()")
        assert browser.run(COLUMN, 5)[-1] == "—"


def test_the_keyboard_alone_filters_and_sorts(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    browser.run("document.querySelector('#run-metrics > .table input[type=search]').focus()")
    browser.press(*"digit=7")
    assert browser.run(COLUMN, 1) == ["digit=7"]
    status = "return document.querySelector('#run-metrics > .table output').textContent"
    assert browser.run(status) == "1 of 11 rows"
    browser.run(
        "const s = document.querySelector('#run-metrics > .table input[type=search]'); s.value = ''; s.dispatchEvent(new Event('input'))"
    )
    browser.press(TAB, SPACE)
    assert len(browser.run(COLUMN, 1)) == 10 and browser.run(status) == "10 of 11 rows", "those that lost something"
    browser.press(SPACE, TAB, TAB, TAB)
    assert browser.run("return document.activeElement.textContent") == "slice"
    browser.press(ENTER)
    assert browser.run(COLUMN, 1)[0] == "digit=0"
    assert browser.run("return document.activeElement.matches(':focus-visible')")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_everything_that_takes_the_focus_has_a_name(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    nameless = browser.run(
        """return [...document.querySelectorAll('a, button, input, summary, [tabindex]')]
            .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert browser.run("return [...document.images].every(i => i.alt)")
    order = browser.run("return [...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
    assert order[0] == 1 and order.count(1) == 1


def test_a_mark_tells_its_values_under_the_mouse(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    script = "const m = document.querySelector('#run-candidates [aria-roledescription=point]'); m.scrollIntoView({block: 'center'});"
    x, y = browser.run(f"{script} const b = m.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]")
    browser.point(x, y)
    assert "SparseCategoricalAccuracy 0.9800" in browser.run(
        "const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent"
    )


# Every text that is shown, with its colour, that of what lies behind it, and its size.
CONTRASTS = """
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
document.querySelectorAll('details').forEach(d => d.open = true);
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !e.getClientRects().length || ['STYLE', 'SCRIPT'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e.closest('svg');
    const [a, b] = [light(rgb(svg ? style.fill : style.color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([Math.round(ratio * 100) / 100, walk.currentNode.textContent.trim().slice(0, 40)]);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_a_contrast_of_4_5_at_least(browser: Chromium, folder: Path, scheme: str) -> None:
    show(browser, folder, run_reports.whole_run(reasons=("no",)), scheme)
    contrasts = browser.run(CONTRASTS)
    assert len(contrasts) > 300
    assert [pair for pair in contrasts if pair[0] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_of_the_card_by_3_at_least(browser: Chromium, folder: Path, scheme: str) -> None:
    show(browser, folder, scheme=scheme)
    colours = browser.run(
        """const probe = document.querySelector('section').appendChild(document.createElement('i'));
        return ['--float', '--edge', '--good', '--bad', '--card'].map(name => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; })"""
    )
    *marks, card = ([int(part) for part in colour[4:-1].split(",")] for colour in colours)

    def light(colour: list[int]) -> float:
        linear = [v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    ratios = [max(light(mark), light(card)) / min(light(mark), light(card)) for mark in marks]
    assert min(ratios) >= 3, ratios


def test_dark_is_dark_in_the_charts_too_and_print_is_light_whatever_one_prefers(browser: Chromium, folder: Path) -> None:
    drawn = "const t = document.querySelector('figure svg text'); return [getComputedStyle(document.body).backgroundColor, getComputedStyle(t).fill]"
    show(browser, folder)
    light = browser.run(drawn)
    browser.media("dark")
    dark = browser.run(drawn)
    assert light != dark and light[0] == "rgb(246, 247, 249)" and dark[0] == "rgb(14, 18, 23)" and light[1] != dark[1]
    browser.media("dark", "print")
    printed = browser.run(drawn)
    assert printed == ["rgb(255, 255, 255)", light[1]]
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"


def test_print_opens_what_is_closed_and_closes_it_again(browser: Chromium, folder: Path) -> None:
    show(browser, folder)
    browser.run(
        """window.seen = null;
        addEventListener('beforeprint', () => { window.seen = document.querySelectorAll('main details:not([open])').length; })"""
    )
    closed = browser.run("return document.querySelectorAll('main details:not([open])').length")
    pdf = browser.command("Page.printToPDF")["data"]
    assert closed > 12 and browser.run("return window.seen") == 0
    assert browser.run("return document.querySelectorAll('main details:not([open])').length") == closed
    assert len(pdf) > 50_000


def test_a_phone_scrolls_down_and_never_sideways(browser: Chromium, folder: Path) -> None:
    show(browser, folder, run_reports.whole_run("a_feature_with_a_very_long_name_that_has_no_spaces_in_it_at_all_" * 2))
    browser.command("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    try:
        assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.command("Emulation.clearDeviceMetricsOverride")
