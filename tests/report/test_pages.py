"""A page as its readers open it: alone, on a phone, in the dark, printed, by ear, and with hostile names in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.cli.command_line import this_process
from tests.faults.lost_partition import lose_a_metadata_partition
from tests.rigs.chromium import PHONE, OpenPage, opened
from tieredctl.report.bars import Series, bars
from tieredctl.report.page import FoundGroup, FoundThing, Page, html_of
from tieredctl.report.plot import SERIES
from tieredctl.report.shares import Share, shares
from tieredctl.report.table import MOST_ROWS, Cell, Shown, Table

pytestmark = pytest.mark.integration

HOSTILE = (
    "<script>hacked=1</script>",
    "</script><script>hacked=1</script>",
    "<!--<script>",
    "'\"><img src=x onerror=hacked=1>",
    "$\\frac{a$ {{ 7*7 }} {% raw %}",
    "\u2028hacked=1\u2029",
    "\u202egnp.exe\x1b[31m\x00",
    "\U0001f4a9 主题 &amp;",
)
EMPTY = Page("verify", "Nothing found", "good", "", [("Command", "tieredctl verify")], [], [], [], [])


@pytest.fixture(scope="module")
def report(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a captured cluster that lost a partition of its metadata topic, and its time indexes besides."""
    folder = lose_a_metadata_partition(captures / "kafka-4.3.1", tmp_path_factory.mktemp("report") / "cluster")
    store = f"file:{folder / 'remote' / 'kafka-tiered-storage'}"
    page = folder / "page.html"
    assert this_process("verify", "--log-dir", folder / "data", "--store", store, "--report", page).exit_code == 4
    return page


@pytest.fixture
def shown(browser: Browser, report: Path) -> Iterator[OpenPage]:
    with opened(browser, report) as page:
        yield page


def test_what_is_wrong_comes_first_with_the_command_that_mends_it(shown: OpenPage) -> None:
    body = shown.page.inner_text("body")

    assert "metadata partition 2 is missing here" in shown.page.inner_text("h1")
    order = ["What is wrong", "172 objects that the metadata promises", "recover indexes", "Coverage", "SEVERITY"]
    assert [body.index(part) for part in order] == sorted(body.index(part) for part in order)


def test_a_page_says_what_it_is_of(shown: OpenPage) -> None:
    facts = shown.page.inner_text(".facts")

    assert re.search(r"Made at\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", facts)
    for part in ("tieredctl verify --log-dir", "4: corruption or loss", "preTTRqnQOeby9xOnCMfyA", "file:"):
        assert part in facts
    assert "Not read at level headers" in shown.page.inner_text("body")


def test_a_page_asks_no_network_and_complains_of_nothing(shown: OpenPage, report: Path) -> None:
    assert shown.requests == [report.as_uri()]
    assert shown.complaints == []


def test_no_style_or_script_but_its_own_runs(shown: OpenPage) -> None:
    shown.page.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'https://a.test/'}))")
    shown.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'hacked=1'}))"
    )

    assert shown.page.evaluate("typeof hacked") == "undefined"
    assert all("Content Security Policy" in complaint for complaint in shown.complaints)
    assert len(shown.complaints) == 2


def test_rows_are_sorted_by_what_they_mean(shown: OpenPage) -> None:
    page = shown.page
    severities = page.locator("tbody tr td:first-child")

    page.get_by_role("button", name="SEVERITY").click()
    ascending = severities.first.inner_text(), page.get_by_role("columnheader").first.get_attribute("aria-sort")
    page.get_by_role("button", name="SEVERITY").click()
    descending = severities.first.inner_text(), page.get_by_role("columnheader").first.get_attribute("aria-sort")

    assert ascending == ("critical", "ascending")
    assert descending == ("error", "descending")


def test_rows_are_filtered_by_all_words(shown: OpenPage) -> None:
    page = shown.page

    page.get_by_role("searchbox").fill("slow7 TIME-INDEX")

    assert page.get_by_role("status").inner_text() == "Rows 1 to 2 of 2 that match, of 173"
    page.get_by_role("searchbox").fill("no such thing")
    assert page.get_by_role("status").inner_text() == "No row of 173 matches"


def test_rows_are_reached_page_by_page_by_the_keyboard(shown: OpenPage) -> None:
    page = shown.page

    page.get_by_role("button", name="Next rows").focus()
    page.keyboard.press("Enter")

    assert page.get_by_role("status").inner_text() == "Rows 51 to 100 of 173"


def test_a_page_fits_a_phone(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=PHONE) as phone:
        assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_for_everybody(browser: Browser, report: Path, scheme: str) -> None:
    with opened(browser, report, color_scheme=scheme) as page:
        for details in page.page.locator("details").all():
            details.evaluate("element => element.open = true")
        found = Axe().run(page.page)

    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_text_and_the_bars_of_plots_stand_out_from_the_sheet(browser: Browser, report: Path, scheme: str) -> None:
    with opened(browser, report, color_scheme=scheme) as page:
        colours = page.page.evaluate(
            """() => {
              const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
              return Object.fromEntries(['sheet', 'ink', 'muted', 'good', 'warning', 'error', 'critical', 'unknown',
                's1', 's2', 's3', 's4', 's5', 's6'].map((name) => [name, of('--' + name)]));
            }"""
        )
        text = page.page.locator("svg text").first.evaluate("element => getComputedStyle(element).fill")

    assert text == f"rgb({', '.join(str(int(colours['ink'][at : at + 2], 16)) for at in (1, 3, 5))})"
    sheet = colours.pop("sheet")
    contrasts = {name: contrast(colour, sheet) for name, colour in colours.items()}
    assert all(contrasts[name] >= 4.5 for name in ("ink", "muted"))
    assert all(contrast >= 3 for contrast in contrasts.values()), contrasts  # WCAG 1.4.11, for what is not text


def contrast(one: str, other: str) -> float:
    """By WCAG 2."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


CRASHED, BUCKET = ("--log-dir", "DATA"), ("--store", "file:BUCKET", "--layout", "aiven")
MOST_HIGH = 100
"""Of a row, in pixels: a few lines, or what is next to each other cannot be compared."""
PAGES = {
    "status": ("status", *CRASHED, *BUCKET),
    "status of a store alone": ("status", *BUCKET),
    "orphans scan": ("orphans", "scan", *CRASHED, *BUCKET, "--min-age", "0s"),
    "remote du": ("remote", "du", *BUCKET),
    "metadata stuck": ("metadata", "stuck", *CRASHED),
    "doctor": ("doctor", "--kraft-snapshot", "DATA/__cluster_metadata-0", "--log-dir", "DATA"),
    "doctor upgrade": ("doctor", "upgrade", "3.9.1", "4.3.1"),
}


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES)
def test_the_page_of_each_command_is_for_everybody_and_asks_nobody(
    browser: Browser, captures: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    cluster, file = captures / "aiven-crash-4.3.1", tmp_path / "page.html"
    places = (word.replace("DATA", str(cluster / "data")).replace("BUCKET", str(cluster / "bucket")) for word in words)
    this_process(*places, "--report", file)

    with opened(browser, file, width=PHONE, color_scheme="dark") as page:
        for details in page.page.locator("details").all():
            details.evaluate("element => element.open = true")
        found = Axe().run(page.page)
        width = page.page.evaluate("document.documentElement.scrollWidth")
        heights = page.page.evaluate(
            "[...document.querySelectorAll('.scroll tbody tr')].map((row) => row.offsetHeight)"
        )

    assert max(heights, default=0) < MOST_HIGH
    assert found.violations_count == 0, found.generate_report()
    assert (page.complaints, page.requests, width) == ([], [file.as_uri()], PHONE)


def test_printed_tables_are_not_cut(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=720) as page:  # A4 less its margins
        page.page.emulate_media(media="print")
        page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        cut = page.page.evaluate(
            "[...document.querySelectorAll('.scroll, .drawing')].filter((it) => it.scrollWidth > it.clientWidth).length"
        )
        rows = page.page.locator("section.table tbody tr").count()
        hidden = page.page.locator(".controls").is_hidden()

    assert (cut, rows, hidden) == (0, 173, True)


def test_without_scripts_the_first_rows_are_there(browser: Browser, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        assert page.page.locator("section.table tbody tr").count() == 50
        assert page.page.locator(".controls").is_hidden()
        assert "Rows 1 to 50 of 173" in page.page.inner_text("body")


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_from_outside_are_only_text(browser: Browser, tmp_path: Path, name: str) -> None:
    rows: list[list[Cell]] = [[name, 1], [f"{name}2", Shown(2, name)]]
    page = replace(
        EMPTY,
        **dict.fromkeys(("title", "verdict", "headline"), name),
        facts=[("Store", name)],
        groups=[FoundGroup("error", "unreadable", name, 1, f"tieredctl verify {name}", [FoundThing(name, name)])],
        unknown=[name],
        plots=[
            bars("a", name, name, [name, "b"], [Series("one", SERIES[0], [1, None]), Series("two", SERIES[1], [0, 2])]),
            shares("b", name, name, [Share(name, 1, SERIES[0])], "Segments"),
        ],
        tables=[Table(name, ("NAME", "NUMBER"), rows)],
    )
    file = tmp_path / "hostile.html"
    file.write_text(html_of(page), encoding="utf-8")

    with opened(browser, file) as shown:
        said = shown.page.locator("section.table tbody td").first.inner_text()
        elements = shown.page.evaluate("[typeof hacked, document.images.length, document.scripts.length]")
        assert shown.complaints == []
    harmless = name if name.isprintable() else name.encode("unicode_escape").decode()
    assert " ".join(said.split()) == " ".join(harmless.split())
    assert elements == ["undefined", 0, 2]  # its data, and its script


def test_a_hundred_thousand_rows_are_filtered_and_sorted(browser: Browser, tmp_path: Path) -> None:
    rows: Iterator[list[Cell]] = ([f"topic-{number % 1000}", number] for number in range(MOST_ROWS + 7))
    page = replace(EMPTY, tables=[Table.of("Objects", ("TOPIC", "SIZE"), rows, "-o jsonl has all of them.")])
    file = tmp_path / "large.html"
    file.write_text(html_of(page), encoding="utf-8")

    with opened(browser, file) as shown:
        status = shown.page.get_by_role("status")
        assert status.inner_text() == "Rows 1 to 50 of 100,000"
        assert "7 are left out. -o jsonl has all of them." in shown.page.inner_text(".cut")
        shown.page.get_by_role("button", name="SIZE").click()
        shown.page.get_by_role("button", name="SIZE").click()
        assert shown.page.locator("tbody td").nth(1).inner_text() == "99999"
        shown.page.get_by_role("searchbox").fill("topic-999")
        assert status.inner_text() == "Rows 1 to 50 of 100 that match, of 100,000"
        assert shown.page.locator("tbody tr").count() == 50


def test_what_is_unknown_is_neither_zero_nor_drawn() -> None:
    plot = bars("a", "Bytes", "", ["known", "not known"], [Series("bytes", SERIES[0], [0, None])])

    assert plot.numbers == [["known", "0"], ["not known", "unknown"]]
    assert plot.svg.count("fill-series-1") == 0


def test_a_share_that_is_small_is_still_seen() -> None:
    plot = shares("a", "Coverage", "", [Share("sound", 999_999, SERIES[0]), Share("lost", 1, SERIES[1])], "Segments")

    bar, *_ = re.findall(r'<rect class="fill-series-2" [^>]* width="([0-9.]+)"', plot.svg)
    assert float(bar) >= 2
    assert [row[2] for row in plot.numbers] == [">99%", "<1%"]


def test_great_offsets_are_shown_to_the_last_digit(browser: Browser, tmp_path: Path) -> None:
    offsets = [(1 << 63) - 1, (1 << 53) + 1, 7]
    file = tmp_path / "offsets.html"
    file.write_text(html_of(replace(EMPTY, tables=[Table("Offsets", ("OFFSET",), [[one] for one in offsets])])))

    with opened(browser, file) as shown:
        shown.page.get_by_role("button", name="OFFSET").click()
        assert shown.page.locator("tbody td").all_inner_texts() == [str(one) for one in sorted(offsets)]


def test_rows_in_a_page_are_ascii_json() -> None:
    table = Table("Names", ("NAME",), [[name] for name in HOSTILE])

    assert table.json().isascii()
    assert not set("<>&") & set(table.json())
    assert len(json.loads(table.json())) == len(HOSTILE)
