"""The site: built strictly, every page in its navigation, links that hold, nothing that comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from playwright.sync_api import Browser

from tests.cli.command_line import REPOSITORY
from tests.rigs.availability import rig_unavailable
from tests.rigs.chromium import chromium, opened
from tests.rigs.prerequisites import RigMissing
from tieredctl.cli.command_tree import nouns
from tieredctl.errors import ErrorCode, ExitCode
from website.reference import commands_of, reference_pages

pytestmark = pytest.mark.integration
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches by itself."""


class Links(HTMLParser):
    """What a page leads to, what it loads, and the anchors that it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.led: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif (tag, name) in LOADED and value:
                self.loaded.add(value)
            elif (tag, name) == ("a", "href") and value:
                self.led.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIEREDCTL_")}
    done = subprocess.run(
        words, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def links(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in site.rglob("*.html")}


def test_every_page_of_docs_is_in_the_navigation(site: Path, links: dict[Path, Links]) -> None:
    docs = REPOSITORY / "docs"
    pages = {page.relative_to(docs).with_suffix(".html").as_posix() for page in docs.rglob("*.md")}

    assert pages <= {urldefrag(link).url for link in links[site / "index.html"].led}


def test_every_link_within_the_site_and_its_anchor_hold(site: Path, links: dict[Path, Links]) -> None:
    for page, found in links.items():
        for link in found.led | found.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.relative_to(site)}: {link}"
            if parts.fragment and target in links:
                assert unquote(parts.fragment) in links[target].anchors | {"__top"}, f"{page.relative_to(site)}: {link}"


def test_every_row_of_a_table_is_in_one(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert "<p>| " not in page.read_text(encoding="utf-8"), page


def test_nothing_is_loaded_from_elsewhere(site: Path, links: dict[Path, Links]) -> None:
    for page, found in links.items():
        assert not [link for link in found.loaded if urlsplit(link).netloc], page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_a_reader_without_a_network_searches_it(site: Path) -> None:
    with browser() as started, opened(started, site / "index.html", offline=True) as reader:
        reader.page.get_by_role("textbox", name="Search").first.fill("unreferenced")
        results = reader.page.locator(".md-search-result__link")
        results.first.wait_for()

        assert "findings.html" in (results.first.get_attribute("href") or "")
        assert not reader.complaints
        assert {urlsplit(url).scheme for url in reader.requests} <= {"file", "data", "blob"}


@contextmanager
def browser() -> Iterator[Browser]:
    try:
        with chromium() as started:
            yield started
    except RigMissing as missing:
        rig_unavailable(str(missing))


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference shows defaults, not what the tests or their Makefile set."""
    for name in [name for name in os.environ if name.startswith("TIEREDCTL_") and name != "TIEREDCTL_CONFIG"]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_variables")
def test_the_reference_has_every_command_with_its_options() -> None:
    pages = reference_pages()

    for noun in nouns():
        for words, command in commands_of(noun):
            section = pages[noun].partition(f"## {' '.join(words)} {{")[2].partition("\n## ")[0]
            names = {name for one in command.params if one.param_type_name == "option" for name in one.opts}
            assert names - set(re.findall(r"`(-[^`]+)`", section)) == set(), words
            assert ("For example:" in section) == ("For example:" in command.help), words


@pytest.mark.usefixtures("no_variables")
def test_the_reference_has_every_exit_code_and_error() -> None:
    page = reference_pages()["exit-codes"]

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == {*map(int, ExitCode)}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == {*ErrorCode}
