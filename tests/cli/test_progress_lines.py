"""Lines about long work for logs: the time, the rate and how long the rest takes, without control characters."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.command_line import Tieredctl, environment
from tests.cli.command_tree import commands
from tests.cli.crashed_cluster import AGED, AT_ONCE, ENOUGH, LISTED, CrashedClusterOnDisk
from tests.cli.terminal_screen import everything_shown
from tieredctl.cli import progress
from tieredctl.cli.progress import ProgressMode, shown_progress
from tieredctl.process.progress import note, note_more

LINE = re.compile(r"^\d\d:\d\d:\d\d  \S.*$", re.MULTILINE)
SHORT = {
    "completions": "prints a text",
    "context add": "changes a file",
    "context list": "reads a file",
    "context remove": "changes a file",
    "context show": "reads a file",
    "context use": "changes a file",
    "demo": "runs other commands, on a cluster of a few segments",
    "diskless gateways": "computes",
    "diskless orphans unlock": "reads one object",
    "estimate wal-cost": "computes",
    "explain-code": "prints a text",
    "exporter": "does not end",
    "offsets": "asks a few questions for each partition",
    "orphans unlock": "reads one object",
    "pipeline run": "Spark shows its own progress",
    "pipeline status": "reads what runs noted",
}
"""What does not grow with objects, segments or bytes, or shows it otherwise, and why."""


@pytest.fixture(autouse=True)
def a_line_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)


def test_every_command_takes_the_option_but_those_that_are_short() -> None:
    without = {
        " ".join(words)
        for words, command in commands()
        if not any("--progress" in getattr(parameter, "opts", ()) for parameter in command.params)
    }
    assert without == SHORT.keys()


def test_a_line_has_the_time_the_rate_and_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """And bytes have units."""
    with shown_progress(ProgressMode.PLAIN, quiet=False):
        note("objects", 100, 1_000)
        note("objects", 150, 1_000)
        note("bytes read", 0, 3 << 20)
        note("bytes read", 1 << 20, 3 << 20)
        note("bytes", 1 << 20)

    first, second, _, some, alone = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  100 of 1000 objects", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  150 of 1000 objects, \S+/s, about \S.* left", second)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  1.0 MiB of 3.0 MiB read, \S+ \w+/s, about \S.* left", some)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  1.0 MiB", alone)


def test_parts_are_added_up_in_whatever_thread_they_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(ProgressMode.PLAIN, quiet=False), ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: note_more("objects listed", 10), range(100)))

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 100
    assert sum("  1000 objects listed" in line for line in lines) == 1


def test_nothing_is_said_where_that_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for mode, quiet in ((ProgressMode.NONE, False), (ProgressMode.PLAIN, True)):
        with shown_progress(mode, quiet=quiet):
            note("objects", 100, 1_000)
            note_more("objects listed", 100)

        assert capsys.readouterr().err == "", mode


@pytest.mark.parametrize("mode", ["plain", "bar", "none"])
def test_a_removal_says_how_far_it_is_or_does_not(planned: CrashedClusterOnDisk, mode: str) -> None:
    outcome = planned.apply("--progress", mode)

    lines = [line for line in outcome.err.splitlines() if LINE.match(line)]
    assert (outcome.exit_code, bool(lines)) == (0, mode != "none")
    assert outcome.err.replace("\n", "").isprintable()


def test_each_step_of_a_removal_does(cluster: CrashedClusterOnDisk) -> None:
    words = {"scan": (), "plan": (*AGED, *ENOUGH), "restore": (), "purge": AT_ONCE}
    for verb, given in words.items():
        if verb in ("restore", "purge"):
            cluster.receipts_file.unlink(missing_ok=True)
            cluster.plan(*AGED, *ENOUGH, "--force")
            assert cluster.apply().exit_code == 0

        outcome = getattr(cluster, verb)(*given, "--progress", "plain")

        assert outcome.exit_code in (0, 3), verb
        assert re.search(r"^\d\d:\d\d:\d\d  \d+ (of \d+ )?(objects|copies) ", outcome.err, re.MULTILINE), verb


def test_what_reads_much_does(captures: Path, tieredctl: Tieredctl) -> None:
    capture = captures / "kafka-4.3.1"
    data = capture / "data"
    store = ("--store", f"file:{capture}/remote/kafka-tiered-storage")
    metadata = ("--log-dir", data)
    for words in (
        ("metadata", "stats", *metadata),
        ("metadata", "format", *metadata),
        ("remote", "du", *store),
        ("store", "check", data),
        ("status", *metadata, *store),
        ("recover", "metadata", *metadata, *store),
        ("snapshot", "inspect", data / "__cluster_metadata-0"),
        ("snapshot", "verify", data / "__cluster_metadata-0"),
        ("explain", "orders7:0@40", *metadata),
        ("store", "inspect", data / "orders7-0/leader-epoch-checkpoint"),
    ):
        outcome = tieredctl(*words, "--progress", "plain")

        assert LINE.search(outcome.err), (words, outcome.err)
        assert not any(map(LINE.match, outcome.out.splitlines())), words


def test_a_simulation_says_how_much_is_left(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "simulate", "--batches", "300", "--progress", "plain")

    counts = [int(number) for number in re.findall(r"^\S+  (\d+) of 300 batches", outcome.err, re.MULTILINE)]
    assert counts == sorted(counts)
    assert counts[-1] == 300


def test_objects_are_counted_once_though_a_store_is_listed_again(captures: Path, tieredctl: Tieredctl) -> None:
    store = f"file:{captures}/kafka-4.3.1/remote/kafka-tiered-storage"

    outcome = tieredctl("remote", "ls", "--store", store, "-o", "jsonl", "--progress", "plain")

    counts = [int(number) for number in re.findall(r"^\S+  (\d+) objects listed", outcome.err, re.MULTILINE)]
    assert max(counts) == len(outcome.lines())


def test_a_rate_is_written_as_people_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0], strftime=lambda _: "23:31:02"))
    for seconds, rate in ((0.01, "10000/s"), (10, "10/s"), (300, "0.333/s")):
        now[0] = 0.0
        lines = progress.LinesApart()
        lines.note(0)
        now[0] = seconds

        assert lines.timed("100 objects", 100) == f"23:31:02  100 objects, {rate}"


def test_verification_says_how_long_the_rest_takes(captures: Path, tieredctl: Tieredctl) -> None:
    capture = captures / "kafka-4.3.1"
    outcome = tieredctl(
        *("verify", "--progress", "plain", "--log-dir", capture / "data"),
        *("--store", f"file:{capture}/remote/kafka-tiered-storage", "--level", "headers"),
    )
    assert re.search(
        r"^\d\d:\d\d:\d\d  \d+ of \d+ segments, \S+ \w+ read, \S+/s, about .* left$", outcome.err, re.MULTILINE
    )


def on_a_terminal(cluster: CrashedClusterOnDisk, answer: Path, rest: str) -> str:
    """What a terminal shows of a scan whose answer goes elsewhere."""
    words = ["orphans", "scan", *cluster.store, "--layout", "aiven", "--log-dir", cluster.log_dir, "-o", "jsonl"]
    ours, terminal = pty.openpty()
    line = shlex.join([sys.executable, "-m", "tieredctl", *map(str, words)])
    script = f"set -o pipefail; {line} {rest} {shlex.quote(str(answer))}"
    variables = environment(TERM="xterm")
    with subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL, stderr=terminal, env=variables) as run:
        os.close(terminal)
        shown = everything_shown(ours)
    assert (run.returncode, len(answer.read_text().splitlines())) == (3, LISTED), shown
    return shown


LESS_OFTEN = [
    pytest.param(rest, marks=pytest.mark.exhaustive) for rest in ("--progress bar >", "--progress bar | cat >")
]


@pytest.mark.parametrize("rest", ["--progress auto >", *LESS_OFTEN])
def test_a_bar_goes_before_anything_is_said(cluster: CrashedClusterOnDisk, tmp_path: Path, rest: str) -> None:
    shown = on_a_terminal(cluster, tmp_path / "answer", rest)

    assert "objects" in shown
    assert shown.rindex("\x1b[?25h") < shown.index("are orphaned")


def test_what_reads_the_answer_has_the_terminal_for_itself(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    assert "\x1b[?25l" not in on_a_terminal(cluster, tmp_path / "answer", "--progress auto | cat >")


def test_a_command_that_another_one_runs_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(ProgressMode.PLAIN, quiet=False):
        note("parts", 1, 2)
        with shown_progress(ProgressMode.PLAIN, quiet=False):
            note("objects", 1, 2)

    assert [line.split("  ")[1] for line in capsys.readouterr().err.splitlines()] == ["1 of 2 parts"]
