"""Where the commands of the documentation are run: a captured cluster or a live one, in a folder of their own."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from contextlib import chdir, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from tests.cli.command_line import environment, this_process
from tests.cli.crashed_cluster import CAPTURE as CRASHED
from tests.cli.crashed_cluster import CLUSTER_ID as CRASHED_ID
from tests.cli.crashed_cluster import DELETED_TOPIC

SECONDS = 120
QUESTION_ENDS = "to continue: "
SERVER, STORE = "broker:9092", "s3://kafka-tiered/prod"
"""What pages name that speak of a live cluster."""
_LOCAL_FLAGS = 3
"""Where termios keeps them."""
_SHELL = frozenset("|&;<>$`*?[#~\n(")
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "PATH")


@dataclass
class Place:
    """A folder in which commands are run, and what they and their output name otherwise there."""

    folder: Path
    names: Mapping[str, str] = field(default_factory=dict)
    """What pages write, and what it is here."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """What pages run besides tieredctl, and the script that does it here."""
    cluster_id: str = ""
    """The answer to the question whether this is the cluster."""
    lives: bool = False
    """Whether the cluster lives, so that figures and ids are others each time."""
    ids: dict[str, str] = field(default_factory=dict)
    """What ids of the page are here."""
    exit_code: int = 0
    """That of the last command."""
    _typed: str = ""
    """The last command, which says which of two names is meant."""
    _only_here: ClassVar[str] = "\0"
    """What output says only here."""

    def run(self, typed: str, *, asks: bool = False) -> list[str]:
        """The lines that a command prints, its talk before its data, as the page would name things."""
        if typed == "echo $?":
            return [str(self.exit_code)]
        self._typed, words = typed, self.here(typed)
        with pytest.MonkeyPatch.context() as patch, chdir(self.folder):
            for name, value in self.variables().items():
                patch.setenv(name, value)
            printed = self._run(words, asks)
        return [self._told(line) for line in printed.splitlines() if self._only_here not in line]

    def _run(self, words: str, asks: bool) -> str:
        if asks:
            self.exit_code, printed = _answered(shlex.split(words), self.cluster_id)
        elif words.startswith("tieredctl ") and not _SHELL.intersection(words):
            self.exit_code, out, err = this_process(*shlex.split(words)[1:])
            printed = err + out
        else:
            done = subprocess.run(
                ["bash", "-c", words], capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False
            )
            self.exit_code, printed = done.returncode, done.stderr + done.stdout
        return printed

    def variables(self) -> dict[str, str]:
        """A home of its own, this tieredctl on the path, and a locale in which drawings are of blocks."""
        home, programs = self.folder / ".home", self.folder / ".home" / "bin"
        if not programs.exists():
            programs.mkdir(parents=True)
            python = shlex.quote(sys.executable)
            for name, command in {"python": python, "tieredctl": f"{python} -m tieredctl", **self.programs}.items():
                (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
                (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        places = (home, home / ".config", home / ".cache", home / ".local" / "state", path)
        return dict(zip(_VARIABLES, map(str, places), strict=True)) | {"LC_ALL": "C.UTF-8"}

    def here(self, typed: str) -> str:
        """A command of a page, with what its names are here."""
        for said, here in (*self.names.items(), *self.ids.items()):
            typed = typed.replace(said, here)
        return typed

    def _told(self, line: str) -> str:
        line = line.replace(f"file:{self.folder}/", "file:")
        for said in sorted(self.names, key=lambda name: name not in self._typed):
            line = line.replace(self.names[said], said)
        return line.replace(str(self.folder / ".home"), "~").replace(f"{self.folder}/", "")


def _answered(words: list[str], answer: str) -> tuple[int, str]:
    """Exit code, and what a terminal shows of a command line whose question is answered."""
    person, terminal = pty.openpty()
    without_echo = termios.tcgetattr(terminal)
    without_echo[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, without_echo)
    os.write(person, f"{answer}\n".encode())
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=environment(NO_COLOR="1")
    ) as process:
        os.close(terminal)
        data = process.communicate(timeout=SECONDS)[0]
    talk = b""
    with suppress(OSError), os.fdopen(person, "rb", buffering=0) as screen:
        while piece := screen.read(1 << 16):
            talk += piece
    shown = (talk + data).decode().replace("\r\n", "\n")
    return process.returncode, shown.replace(QUESTION_ENDS, f"{QUESTION_ENDS}{answer}\n")


def captured_places(captures: Path) -> dict[str, Callable[[Path], Place]]:
    """Those that need no server, by name; each is made in an empty folder."""

    def sound(folder: Path) -> Place:
        """Kafka 4.3.1 with LocalTieredStorage, stopped: `data`, and the store `remote/kafka-tiered-storage`."""
        return Place(_copied(captures / "kafka-4.3.1", folder))

    def damaged(folder: Path) -> Place:
        """The same, but a bit of a log is flipped, and a time index is gone."""
        place = sound(folder)
        (log,) = folder.rglob("*V_QmtSRAS-qC_YrVmRd2HA.log")
        data = bytearray(log.read_bytes())
        data[100] ^= 1
        log.write_bytes(data)
        (time_index,) = folder.rglob("*YGh7W7-vQHekQhlkpKRLsg.timeindex")
        time_index.unlink()
        return place

    def crashed(folder: Path) -> Place:
        """Kafka 4.3.1 with Aiven's layout, killed eight times: `data`, `bucket`, and the live topics in
        `topic-ids.txt`, of which one was deleted."""
        _copied(captures / CRASHED, folder)
        topics = (file for file in folder.glob("data/*/partition.metadata") if DELETED_TOPIC not in file.parent.name)
        topic_ids = {line.split()[1] for file in topics for line in file.read_text().splitlines() if "topic_id" in line}
        (folder / "topic-ids.txt").write_text("\n".join(sorted(topic_ids)) + "\n")
        return Place(folder, cluster_id=CRASHED_ID)

    def encrypted(folder: Path) -> Place:
        """Kafka 4.3.1 with Aiven's layout, compressed and encrypted: `data`, `bucket`, `keys/private.pem`."""
        return Place(_copied(captures / "aiven-zstd-encrypted-4.3.1", folder))

    def crashed_and_running(folder: Path) -> Place:
        """`crashed`, spoken of as a live cluster with its store in S3."""
        return AsIfRunning(crashed(folder).folder, cluster_id=CRASHED_ID)

    def as_if_running(folder: Path) -> Place:
        """`sound`, spoken of as a live cluster with its store in /mnt/tiered/kafka-tiered-storage."""
        return AsIfRunning(sound(folder).folder, {"file:/mnt/tiered/": "file:remote/"})

    def nothing(folder: Path) -> Place:
        """An empty folder."""
        return Place(folder)

    return {
        place.__name__.replace("_", " "): place
        for place in (sound, damaged, crashed, encrypted, crashed_and_running, as_if_running, nothing)
    }


class AsIfRunning(Place):
    """A stopped cluster of which a page speaks as of a live one: only the names of server and store differ."""

    _only_here = "for a cluster that no longer exists"
    _LIVE = f"--bootstrap-server {SERVER}"
    _STOPPED = "--log-dir data"
    _SNAPSHOT = " --kraft-snapshot data/__cluster_metadata-0"
    _TOPICS, _GONE = " --live-topic-ids topic-ids.txt", " --offline-metadata"

    def here(self, typed: str) -> str:
        """A command of a page, with what its names are here."""
        metadata = self._STOPPED
        if typed.startswith("tieredctl orphans"):
            metadata += self._TOPICS
            if not typed.startswith(("tieredctl orphans plan", "tieredctl orphans scan")):
                metadata += self._GONE
        elif typed.startswith("tieredctl partition"):
            metadata += self._SNAPSHOT
        typed = typed.replace(self._LIVE, metadata).replace(STORE, "file:bucket").replace("/var/lib/node/", "")
        return super().here(typed)

    def _told(self, line: str) -> str:
        line = super()._told(line).replace("file:bucket", STORE)
        for here in (self._TOPICS, self._GONE, self._SNAPSHOT):
            line = line.replace(here, "")
        return line.replace(self._STOPPED, self._LIVE)


def _copied(capture: Path, folder: Path) -> Path:
    shutil.copytree(capture, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("oracle", "plaintext"))
    return folder
