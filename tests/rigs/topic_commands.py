"""`topic enable` and `topic disable` in the test's own process or in one that is stopped, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.cli.command_line import Outcome, environment
from tieredctl.cli.main import run

from .broker import KafkaBroker

SECONDS = 60
_INTERRUPTED_AT_THE_CHANGE = """
import os, sys
from tieredctl.cli.main import main
from tieredctl.kafka.live_cluster import LiveCluster
is_made, signals = sys.argv.pop(1) == "made", sys.argv.pop(1)
alter = LiveCluster.alter_topic_configs
def altered(cluster, name, changes, *, validate_only):
    if validate_only or is_made:
        alter(cluster, name, changes, validate_only=validate_only)
    for number in "" if validate_only else signals.split():
        os.kill(os.getpid(), int(number))
LiveCluster.alter_topic_configs = altered
main()
"""
"""Gets its signals within the change, right before or after the brokers are asked to make it."""


@dataclass(frozen=True)
class TopicCommands:
    """The two commands, on one cluster."""

    broker: KafkaBroker
    capfd: pytest.CaptureFixture[str]

    def plan(self, verb: str, topic: str, *words: object) -> Outcome:
        """Runs it without --apply."""
        self.capfd.readouterr()
        # Words may name another listener.
        server = () if "--bootstrap-server" in words else ("--bootstrap-server", self.broker.bootstrap_server)
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

    def interrupted(self, verb: str, topic: str, *words: str, signals: Sequence[int], is_made: bool) -> Outcome:
        """Runs it with --apply in a process of its own, which gets signals at the change: when it is made, or before.
        In the latter case the brokers are not asked to make it."""
        server = ("--bootstrap-server", self.broker.bootstrap_server)
        how = ("made" if is_made else "not yet", " ".join(str(int(number)) for number in signals))
        command = [sys.executable, "-c", _INTERRUPTED_AT_THE_CHANGE, *how, "topic", verb, topic, *server, *self._sure]
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @property
    def _sure(self) -> tuple[str, ...]:
        return ("--apply", "--yes", "--cluster-id", self.broker.cluster_id)
