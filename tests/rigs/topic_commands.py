"""`topic enable` and `topic disable` in the test's own process or in one that is stopped, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.cli.command_line import Outcome, environment
from tieredctl.cli.main import run

from .broker import KafkaBroker

SECONDS = 60


@dataclass(frozen=True)
class TopicCommands:
    """The two commands, on one cluster."""

    broker: KafkaBroker
    capfd: pytest.CaptureFixture[str]

    def plan(self, verb: str, topic: str, *words: object) -> Outcome:
        """Runs it without --apply."""
        self.capfd.readouterr()
        # Of an option that is given twice, the last counts: words may name another listener.
        server = ("--bootstrap-server", self.broker.bootstrap_server)
        code = run(["topic", verb, topic, *server, "-o", "json", *map(str, words)])
        return Outcome(code, *self.capfd.readouterr())

    def apply(self, verb: str, topic: str, *words: object) -> Outcome:
        """Runs it with --apply, and the right confirmation."""
        return self.plan(verb, topic, *self._sure, *words)

    def remove(self, topic_id: str) -> Outcome:
        """Runs `partition remove` as the remedy of remote-data-left has it, though brokers were at it just now."""
        words = ("--even-if-live", "--segment-events-only", "--brokers-are-done", "--layout", "local", "-o", "json")
        where = ("--bootstrap-server", self.broker.bootstrap_server, "--store", f"file:{self.broker.remote_dir}")
        self.capfd.readouterr()
        code = run(["partition", "remove", topic_id, *where, *words, *self._sure])
        return Outcome(code, *self.capfd.readouterr())

    def stopped(self, verb: str, topic: str, said: str, by_signal: int, *words: str) -> Outcome:
        """Runs it with --apply in a process of its own, which is sent a signal once it has said something."""
        server = ("--bootstrap-server", self.broker.bootstrap_server)
        command = [sys.executable, "-m", "tieredctl", "topic", verb, topic, *server, *self._sure, *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
            assert process.stderr is not None
            heard = ""
            while said not in heard:
                line = process.stderr.readline()
                assert line, f"it ended before it said {said!r}: {heard}"
                heard += line
            os.kill(process.pid, by_signal)
            rest = process.stderr.read()
            return Outcome(process.wait(SECONDS), "", heard + rest)

    @property
    def _sure(self) -> tuple[str, ...]:
        return ("--apply", "--yes", "--cluster-id", self.broker.cluster_id)
