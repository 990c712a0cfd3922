"""What the README shows is what is printed.

A line that ends in `…` was cut there, and a line `…` stands for all that follow. Examples on a live cluster are run on
what a captured one left: only the names of server and store differ.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.command_line import REPOSITORY, environment
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID
from tieredctl.cli.main import NOUNS, _app

README = REPOSITORY / "README.md"
COMMAND = "$ tieredctl "
DELETED_TOPIC = "gone33"
CUT = "…"
_LOCAL_FLAGS = 3
"""Where termios keeps them."""
SERVER, STORE = "--bootstrap-server broker:9092", "s3://kafka-tiered/prod"
"""What the README names, and here is a log directory and a folder."""
WHILE_CLUSTER_IS_DOWN = "--log-dir data --live-topic-ids topic-ids.txt"
OF_A_GONE_CLUSTER = "for a cluster that no longer exists"
QUESTION_ENDS = "to continue: "
CHANGING = {"--apply", "--no-lease", "--yes"}
"""What only commands take that change something."""


@dataclass(frozen=True)
class Example:
    """A command line of the README, and the lines that it is said to print."""

    words: str
    printed: Sequence[str]

    @property
    def is_of_orphans(self) -> bool:
        return self.words.startswith("orphans")


def examples() -> Iterator[Example]:
    """Those that the README shows with what they print."""
    for block in re.findall(r"^```\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL):
        for one in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            if one.startswith(COMMAND):
                command, *printed = one.splitlines()
                yield Example(command.removeprefix(COMMAND), printed)


@pytest.fixture(scope="module")
def damaged_cluster(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster of the first examples: a bit of a log is flipped, and a time index is gone."""
    folder = tmp_path_factory.mktemp("readme") / "cluster"
    shutil.copytree(captures / "kafka-4.3.1", folder)
    (log,) = folder.rglob("*V_QmtSRAS-qC_YrVmRd2HA.log")
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    (time_index,) = folder.rglob("*YGh7W7-vQHekQhlkpKRLsg.timeindex")
    time_index.unlink()
    return folder


@pytest.fixture(scope="module")
def crashed_cluster(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster of the examples that are about orphans; a topic of it was deleted."""
    folder = tmp_path_factory.mktemp("readme") / "cluster"
    shutil.copytree(captures / CAPTURE, folder)
    topics = (file for file in folder.glob("data/*/partition.metadata") if DELETED_TOPIC not in file.parent.name)
    topic_ids = {line.split()[1] for file in topics for line in file.read_text().splitlines() if "topic_id" in line}
    (folder / "topic-ids.txt").write_text("\n".join(sorted(topic_ids)) + "\n")
    return folder


def shown_to_a_person(words: str, folder: Path) -> list[str]:
    """What a terminal shows of a command line, the talk before the data; its question is answered with the cluster's
    id."""
    command = [sys.executable, "-m", "tieredctl", *shlex.split(words)]
    person, terminal = pty.openpty()
    without_echo = termios.tcgetattr(terminal)
    without_echo[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, without_echo)
    os.write(person, f"{CLUSTER_ID}\n".encode())
    with subprocess.Popen(
        command, cwd=folder, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=environment(NO_COLOR="1")
    ) as process:
        os.close(terminal)
        data = process.communicate(timeout=60)[0]
    talk = _all_of(person)
    shown = (talk + data).decode().replace("\r\n", "\n")
    return shown.replace(QUESTION_ENDS, f"{QUESTION_ENDS}{CLUSTER_ID}\n").splitlines()


def _all_of(person: int) -> bytes:
    """What is on the screen, when nobody writes to it any more."""
    shown = b""
    with suppress(OSError), os.fdopen(person, "rb", buffering=0) as screen:
        while piece := screen.read(1 << 16):
            shown += piece
    return shown


def shows(said: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether these lines, some of them cut, are the ones printed."""
    if said and said[-1] == CUT:
        said, printed = said[:-1], printed[: len(said) - 1]
    return len(said) == len(printed) and all(
        line.startswith(one.removesuffix(CUT)) if one.endswith(CUT) else line == one
        for one, line in zip(said, printed, strict=True)
    )


@pytest.mark.parametrize(
    "example", [one for one in examples() if one.printed and not one.is_of_orphans], ids=lambda one: one.words
)
def test_a_look_prints_what_is_shown(example: Example, damaged_cluster: Path) -> None:
    command = [sys.executable, "-m", "tieredctl", *shlex.split(example.words)]
    done = subprocess.run(
        command, cwd=damaged_cluster, capture_output=True, text=True, env=environment(), timeout=60, check=False
    )
    printed = (done.stderr + done.stdout).splitlines()

    assert shows(example.printed, printed), "\n".join(printed)


def test_a_removal_prints_what_is_shown_from_its_plan_to_its_end(crashed_cluster: Path) -> None:
    for example in examples():
        if example.is_of_orphans and example.printed:
            metadata = WHILE_CLUSTER_IS_DOWN
            if not example.words.startswith(("orphans plan", "orphans scan")):
                metadata += " --offline-metadata"
            words = example.words.replace(SERVER, metadata).replace(STORE, "file:bucket")

            printed = shown_to_a_person(words, crashed_cluster)

            said = [line.replace(f"file:{crashed_cluster / 'bucket'}", STORE) for line in printed]
            said = [line.replace("file:bucket", STORE).replace(WHILE_CLUSTER_IS_DOWN, SERVER) for line in said]
            said = [line.removesuffix(" --offline-metadata") for line in said if OF_A_GONE_CLUSTER not in line]
            assert shows(example.printed, said), f"{words}\n" + "\n".join(said)


def test_the_commands_that_change_something_are_named() -> None:
    introduction = README.read_text().partition("## ")[0]
    named = set(re.findall(r"`((?:orphans|partition|topic|recover|snapshot|wal) [a-z]+)`", introduction))

    assert named == {words for words, options in commands() if options & CHANGING}


def commands() -> Iterator[tuple[str, set[str]]]:
    """Each noun and verb with the names of its options."""
    for noun in NOUNS:
        for verb in getattr(named_command([noun], noun), "commands", {}):
            command = named_command([noun, verb], noun).commands[verb]
            yield f"{noun} {verb}", {option for one in command.params for option in one.opts}


def named_command(words: list[str], noun: str) -> Any:
    """A noun, with the options of the verb that the words name: others are not loaded."""
    root: Any = typer.main.get_command(_app(words))
    return root.commands[noun]
