"""docs/kips.md lists each section of five KIPs, names only what there is, and a test that uses it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

import pytest

from tieredctl.cli.completion.command_table import CommandTable

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT, *ROOT.glob("plugins/*")]
"""Where packages are."""
PAGE = ROOT / "docs" / "kips.md"
ROW = re.compile(r"^\| (?P<section>.+?) \| (?P<place>.*?) \|(?: (?P<test>\S+))? \|$")
QUOTED = re.compile(r"`([^`]+)`")
COMMAND = re.compile("tieredctl ")
NOTHING_TO_TEST = ("background", "the brokers'", "the sections below it")

SECTIONS = {
    "KIP-405": (67, "2c4ffd6275120b19"),
    "KIP-1023": (13, "e6ef4dcf97b16ab7"),
    "KIP-630": (41, "3a949ee99464e468"),
    "KIP-1176": (50, "0f7a70d34c89cea6"),
    "KIP-1164": (43, "801c335b2e9986cd"),
}
"""How many headings a KIP's text has, and how the SHA-256 of their lines begins, in the KIP's own order. A heading that
comes twice has what it is of after it."""


def rows(kip: str) -> list[tuple[str, str, str | None]]:
    """(section, place, test) of each row of a KIP's table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(f"\n## {kip}\n")[1].split("\n## ")[0].split("\n### ")[0]
    found = [match for line in table.splitlines() if (match := ROW.match(line))]
    return [(one["section"], one["place"], one["test"]) for one in found if one["section"] not in ("section", "---")]


@pytest.mark.parametrize("kip", SECTIONS)
def test_every_section_of_a_kip_is_listed(kip: str) -> None:
    sections = [section for section, _, _ in rows(kip)]

    assert (len(sections), sha256("\n".join(sections).encode()).hexdigest()[:16]) == SECTIONS[kip]


@pytest.mark.parametrize("kip", SECTIONS)
def test_what_a_section_names_is_there(kip: str) -> None:
    for section, place, _ in rows(kip):
        for name in QUOTED.findall(place):
            if name.startswith("tieredctl "):
                assert is_command(name.split()[1:]), (section, name)
            elif name.endswith(".py"):
                assert any((folder / name).is_file() for folder in FOLDERS), (section, name)


def is_command(words: list[str]) -> bool:
    """Whether the command line has these words, and the last command of them the options."""
    verbs = list(takewhile(lambda word: not word.startswith("-"), words))
    table = CommandTable.installed()
    options = {word for word in words if word.startswith("-")}
    return table.has(verbs) and table.command(verbs).options.keys() >= options


@pytest.mark.parametrize("kip", SECTIONS)
def test_what_has_no_command_says_so(kip: str) -> None:
    for section, place, _ in rows(kip):
        names = QUOTED.findall(place)
        has_only_modules = any(name.endswith(".py") for name in names) and not any(map(COMMAND.match, names))
        assert has_only_modules == ("no command" in place), section


@pytest.mark.parametrize("kip", SECTIONS)
def test_the_test_of_a_section_uses_what_the_section_names(kip: str) -> None:
    for section, place, test in rows(kip):
        names = QUOTED.findall(place)
        modules = {name for name in names if name.endswith(".py")}
        commands = [name.split()[1:] for name in names if COMMAND.match(name)]
        if test is None or not (modules or commands):
            continue
        used = sources_of(ROOT / test.strip("`").partition("::")[0])
        runs = any(mentions(text, words) for text in used.values() for words in commands)
        assert runs or modules & used.keys() or reaches_command(used, commands), (section, test)


def sources_of(test: Path) -> dict[str, str]:
    """The text of a test and of all that it imports, directly or not, by path within its package's folder."""
    found: dict[str, str] = {}
    waiting = [str(test.relative_to(ROOT))]
    while waiting:
        name = waiting.pop()
        source = None if name in found else read(name)
        if source is not None:
            found[name], imports = source
            waiting += imports
    return found


@cache
def read(name: str) -> tuple[str, Sequence[str]] | None:
    """A file's text, and the files that it imports; None where there is none."""
    file = next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
    if file is None:
        return None
    text = file.read_text(encoding="utf-8")
    return text, list(imported(name, text))


def imported(name: str, text: str) -> Iterator[str]:
    """The files that a module's imports may name."""
    for one in ast.walk(ast.parse(text)):
        if isinstance(one, ast.ImportFrom):
            package = "/".join(name.split("/")[: -one.level]) + "/" if one.level else ""
            module = package + (one.module or "").replace(".", "/")
            yield f"{module}.py"
            yield from (f"{module}/{alias.name}.py" for alias in one.names)


def mentions(text: str, words: list[str]) -> bool:
    """Whether a text has a command's words one after the other, as arguments or on a command line."""
    return '", "'.join(words) in text or " ".join(words) in text


def reaches_command(used: Mapping[str, str], commands: list[list[str]]) -> bool:
    """Whether what a test imports has the operation of one of the commands, under the name of its noun or verb."""
    verbs = {word.replace("-", "_") for words in commands for word in words if not word.startswith("-")}
    return any(verbs & set(re.split(r"[/_.]", path)) for path in used if not path.startswith("tests/"))


@pytest.mark.parametrize("kip", SECTIONS)
def test_the_test_of_a_section_is_there(kip: str) -> None:
    for section, place, test in rows(kip):
        if test is None:
            assert place.startswith(NOTHING_TO_TEST), section
            continue
        file, _, name = test.strip("`").partition("::")
        assert (ROOT / file).is_file(), (section, file)
        if name:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (section, test)


SETTINGS = {
    ("docs/wal.md", "\n## Settings\n"): (
        "remote.wal.storage.enable",
        "remote.log.wal.storage.manager.impl.prefix",
        "remote.log.wal.storage.system.enable",
        "remote.log.wal.storage.manager.class.name",
        "remote.log.wal.storage.manager.class.path",
        "remote.wal.log.manager.thread.pool.size",
        "remote.wal.log.manager.combiner.thread.pool.size",
        "remote.wal.log.manager.combiner.queue.size",
        "remote.wal.log.manager.combiner.task.interval.ms",
        "remote.wal.log.manager.combiner.task.upload.bytes",
    ),
    ("docs/diskless.md", "\n### Settings\n"): (
        "diskless.metadata.topic.num.partitions",
        "diskless.coordinator.orphan.scan.interval.ms",
        "diskless.coordinator.orphan.scan.grace.period.ms",
    ),
}
"""Of KIP-1176 and KIP-1164, by the page and its heading."""


def test_every_setting_of_the_proposals_has_its_counterpart() -> None:
    for (page, heading), settings in SETTINGS.items():
        table = (ROOT / page).read_text(encoding="utf-8").split(heading)[1].split("\n## ")[0].split("\n### ")[0]

        named = [name for line in table.splitlines() for name in QUOTED.findall(line.partition(" | ")[0])]

        assert sorted(named) == sorted(settings), page
