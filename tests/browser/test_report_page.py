"""The class report in a real Chromium: read by eye, by keyboard and by screen reader, with nobody's text acting in it."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from grader.report.class_report import write_reports
from tests.browser.lab import KIT, SCREENSHOTS
from tests.report_class import HOSTILE, make_class

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

ROWS = "#matrix tbody tr"
MANY = 500


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a class of thirty, hostile names among them, that opens in English."""
    rows, calibration = make_class(30)
    return write_reports(tmp_path_factory.mktemp("report"), rows, calibration, language="en")


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab. An error, a word on the console (a refused script among them) or a request that leaves the file fails the test."""
    complaints: list[str] = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text))
    opened.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    opened.on("request", lambda request: complaints.append(request.url) if is_outside(request.url) else None)
    yield opened
    opened.close()

    assert complaints == []


def is_outside(url: str) -> bool:
    """Say whether a request is for anything but the report itself."""
    return not (url.startswith("file:") and url.partition("#")[0].endswith("/report.html"))


def show(page: Page, report: Path, **asked: str) -> None:
    """Open the report at a place, in a fresh document."""
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#{'&'.join(f'{key}={value}' for key, value in asked.items())}")


def names(page: Page) -> list[str]:
    """Give the students in the order in which they are shown."""
    return page.locator(f"{ROWS} th").all_inner_texts()


def violations(page: Page) -> list[str]:
    """Give what the accessibility rules find on the whole page, one line each."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


def picture(page: Page, name: str) -> None:
    """Keep a picture for whoever looks at the artefacts."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_accessibility_rules_find_nothing(page: Page, tmp_path: Path, language: str, scheme: str) -> None:
    """On the class and on a student's page, in either language, light and dark."""
    rows, calibration = make_class(8)
    report = write_reports(tmp_path, rows, calibration, language="en")
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    show(page, report, lang=language)
    expect(page.locator("html")).to_have_attribute("lang", {"zh": "zh-CN", "en": "en"}[language])
    assert violations(page) == []
    picture(page, f"report-class-{language}-{scheme}")

    page.locator(f"{ROWS} a").filter(has_text="noscript").click()
    expect(page.locator("#one .miss").first).to_be_visible()
    for folded in page.locator("#one summary").all():
        folded.click()
    assert violations(page) == []
    picture(page, f"report-student-{language}-{scheme}")


def test_everything_is_done_by_keyboard(page: Page, report: Path) -> None:
    """Sort, find, open a student and come back: with Tab, arrows and Enter, the focus where it is looked for."""
    show(page, report)
    page.keyboard.press("Tab")  # language
    page.keyboard.press("Tab")  # lesson
    page.keyboard.press("Tab")
    page.keyboard.type("student 00")
    expect(page.get_by_role("status")).to_have_text("10 of 30 submissions shown")
    page.keyboard.press("Tab")  # verdict
    page.keyboard.press("Tab")  # the region that scrolls
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Student")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.keyboard.press("Home")
    expect(page.locator(":focus")).to_have_text("Student")
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="Student")).to_have_attribute("aria-sort", "descending")
    assert names(page) == [f"student {number:03}" for number in range(9, -1, -1)]

    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_text("student 008")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="student 008")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_contain_text("Back to the class")
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_text("student 008")
    assert names(page) == [f"student {number:03}" for number in range(9, -1, -1)]
    page.go_back()
    expect(page.get_by_role("heading", name="student 008")).to_be_focused()


def test_a_verdict_filters_the_class(page: Page, report: Path) -> None:
    """Only rows with that verdict stay, and their number is told as the choice had promised."""
    show(page, report)
    choice = page.get_by_label("Verdict").locator("option").filter(has_text="complete")
    promised = int(re.search(r"\((\d+)\)", choice.inner_text())[1])
    page.get_by_label("Verdict").select_option("complete")
    expect(page.get_by_role("status")).to_have_text(f"{promised} of 30 submissions shown")
    assert set(page.locator(f"{ROWS} td:nth-child(2)").all_inner_texts()) == {"complete"}


def test_any_column_sorts(page: Page, report: Path) -> None:
    """Points from most to least, then from least to most; a test brings those to the front who missed it."""
    show(page, report)
    for direction in ("descending", "ascending"):
        page.get_by_role("button", name="Points", exact=True).click()
        expect(page.get_by_role("columnheader", name="Points")).to_have_attribute("aria-sort", direction)
        shown = page.locator(f"{ROWS} td:nth-child(5)").all_inner_texts()
        points = [float(text.partition("/")[0] or -1) for text in shown]
        assert points == sorted(points, reverse=direction == "descending")
    page.get_by_role("button", name="02", exact=True).click()
    marks = page.locator(f"{ROWS} td:nth-child(7)").evaluate_all("cells => cells.map(cell => cell.ariaLabel)")
    assert "passed" not in marks[: sum(mark not in ("passed", "not graded") for mark in marks)]


def test_the_language_changes_in_the_page(page: Page, report: Path) -> None:
    """Both languages are inside; the address remembers the choice, and the order of the class stays."""
    show(page, report, sort="points:up")
    before = names(page)
    page.get_by_label("中文").check()
    expect(page.get_by_role("columnheader", name="得分")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == before
    page.reload()
    expect(page.get_by_label("中文")).to_be_checked()
    expect(page.get_by_role("heading", name="评分报告", exact=True)).to_be_visible()


def test_hostile_names_are_shown_as_text(page: Page, report: Path) -> None:
    """Every name stands there as it may be read; none has become an element, a script, or another order of letters."""
    show(page, report)
    shown = names(page)
    for name in HOSTILE:
        visible = name.replace("\n", "\\n").replace("\t", "\\t").replace("\u202e", "\\u202e")
        visible = visible.replace("\x00", "\\x00").replace("\x1b", "\\x1b").replace("\x85", "\\x85")
        assert visible.replace("\udce9", "\\udce9").replace("\ufffe", "\\ufffe") in shown
    elements = page.locator("#matrix tbody *").evaluate_all(
        "all => [...new Set(all.map(one => one.localName))]"
    )
    assert set(elements) == {"tr", "th", "td", "a", "bdi", "span"}
    assert page.title() == "Grading report"
    for name in ("<script>", "</script>", "onclick", "[link]"):
        page.locator(f"{ROWS} a").filter(has_text=name).first.click()
        expect(page.locator("#one h2")).to_contain_text(name)
        assert page.locator("#one").locator("script, img, b").count() == 0
        page.go_back()


def test_the_page_may_do_nothing_but_what_its_one_script_does(context: BrowserContext, report: Path) -> None:
    """The content security policy refuses a second script, a foreign image and a connection."""
    page = context.new_page()
    page.goto(report.as_uri())
    refused = page.evaluate(
        """() => new Promise((done) => {
            const refused = new Set();
            addEventListener("securitypolicyviolation", (event) => {
                refused.add(event.effectiveDirective);
                if (refused.size === 3) done([...refused].sort());
            });
            const script = document.createElement("script");
            script.textContent = "window.owned = 1";
            document.body.append(script);
            new Image().src = "http://127.0.0.1:9/";
            fetch("http://127.0.0.1:9/").catch(() => {});
        })"""
    )
    owned = page.evaluate("window.owned")
    page.close()

    assert refused == ["connect-src", "img-src", "script-src-elem"]
    assert owned is None


def test_it_can_be_read_without_scripts(context: BrowserContext, report: Path) -> None:
    """With scripts off the matrix, every student and every message are there as text."""
    page = context.new_page()
    context.new_cdp_session(page).send("Emulation.setScriptExecutionDisabled", {"value": True})
    page.goto(report.as_uri())
    text = page.locator("body").inner_text()
    elements = page.locator("bdi *").count()
    page.close()

    assert "Scripts do not run here" in text
    assert elements == 0
    for name in HOSTILE[:3]:
        assert text.count(name) >= 3  # a row for each lesson, a page
    assert re.search(r"22-\S+: failed\. found: student \d+", text)


@pytest.mark.parametrize("count", [0, 1])
def test_a_class_of_nobody_has_a_page(page: Page, tmp_path: Path, count: int) -> None:
    """An empty class, or one whose only student was never graded, is shown without an error; so is an unknown student."""
    rows, calibration = make_class(3)
    show(page, write_reports(tmp_path, rows[len(rows) - count :], calibration, language="en"))
    expect(page.locator(ROWS)).to_have_count(count)
    expect(page.get_by_role("status")).to_have_text(
        "1 of 1 submissions shown" if count else "No submission fits."
    )
    show(page, tmp_path / "report.html", student="nobody at all")
    expect(page.get_by_role("heading", name="This report has no such submission.")).to_be_focused()


def test_five_hundred_students_sort_and_filter_without_a_stall(page: Page, tmp_path: Path) -> None:
    """Every sort and filter shows the right rows; how long each took is left for the benchmark's table."""
    rows, calibration = make_class(MANY)
    show(page, write_reports(tmp_path, rows, calibration, language="en"))
    expect(page.get_by_role("status")).to_have_text(f"{MANY} of {MANY} submissions shown")
    milliseconds = sorted(main_thread_of(page, step) for step in STEPS)
    found = {
        "p95_ms": milliseconds[math.ceil(len(STEPS) * 0.95) - 1],
        "longest_ms": milliseconds[-1],
        "steps": len(STEPS),
    }
    out = KIT / "out" / "browser"
    out.mkdir(parents=True, exist_ok=True)
    (out / "report-500.json").write_text(json.dumps(found))

    assert page.locator(ROWS).count() == MANY


STEPS = [
    *(f"document.querySelectorAll('#matrix thead button')[{at}].click()" for at in range(15)),
    *(
        f"(find => {{ find.value = '{text}'; find.dispatchEvent(new Event('input')) }})(document.getElementById('search'))"
        for text in ("s", "st", "student 1", "student 12", "")
    ),
]
"""Sorting by a column, and typing into the search field."""


def main_thread_of(page: Page, step: str) -> float:
    """Act, wait until it is painted, and give the milliseconds of the page's one thread, whatever else the machine does."""
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})
    spent = []
    for script in (
        "new Promise(done => requestAnimationFrame(() => setTimeout(done)))",
        f"new Promise(done => {{ {step}; requestAnimationFrame(() => setTimeout(done)) }})",
    ):
        page.evaluate(script)
        metrics = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
        spent.append(metrics["TaskDuration"] * 1000)
    client.detach()
    return spent[1] - spent[0]
