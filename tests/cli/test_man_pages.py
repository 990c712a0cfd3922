"""Manual pages: one for each command, with all that its help has, in roff that every formatter understands."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tieredctl.cli.completion.command_table import CommandTable, row
from tieredctl.cli.man_pages import man_pages
from tieredctl.errors import ExitCode

REQUEST = re.compile(r'\.(SH [A-Z ]+|PP|TP|TH( "[^"]*"){5})')
ESCAPE = re.compile(r"\\(-|e|&|f[BIR]|\[u[0-9A-F]{4,5}\])")


def _roff(text: str) -> str:
    return text.replace("-", "\\-")


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    return man_pages(CommandTable.installed())


def test_each_command_has_a_page_with_its_options_and_exit_codes(pages: Mapping[str, str]) -> None:
    table = CommandTable.installed()

    for words in table.commands():
        page = pages["-".join(["tieredctl", *words]) + ".1"]
        for option in table.command(words).options:
            assert f"\\fB{_roff(option)}\\fR" in page
        for verb in table.verbs(words):
            assert f"\\-{_roff(verb)}\\fR(1)" in page
        assert all(f"\n.TP\n{int(code)}\n" in page for code in ExitCode)


def test_a_page_is_plain_roff(pages: Mapping[str, str]) -> None:
    for name, page in pages.items():
        for line in page.splitlines():
            assert line.isascii(), name
            assert not line.startswith((".", "'")) or REQUEST.fullmatch(line), f"{name}: {line}"
            assert "\\" not in ESCAPE.sub("", line), f"{name}: {line}"
            assert line, name


def test_a_help_of_requests_and_escapes_is_text() -> None:
    text = "\n".join(
        [
            row((), "command", ".SH a\\b\n\n'.so /etc/passwd\n\nFor example: tieredctl -x 'ä'"),
            row((), "option", "--x", "text", "\\X", "once", ".so `/etc/passwd`"),
        ]
    )

    page = man_pages(CommandTable(text))["tieredctl.1"]

    assert not [line for line in page.splitlines() if line.startswith((".so", "'", ".SH a"))]
    assert "\\&.so \\fB/etc/passwd\\fR" in page
    assert "\\eX" in page
    assert "\\[u00E4]" in page
