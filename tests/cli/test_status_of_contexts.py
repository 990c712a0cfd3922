"""`status --all-contexts` has a row for each cluster; they are asked together, and one that fails stops no other."""

from __future__ import annotations

import json
import subprocess
import sys
from _thread import interrupt_main
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event

import pytest

from tests.cli.command_line import SECONDS, Tieredctl, environment
from tests.cli.crashed_cluster import CrashedClusterOnDisk
from tests.rigs.ports import free_ports
from tieredctl.model.clock import Clock
from tieredctl.ops.status.board import Status
from tieredctl.wiring.status import MOST_AT_ONCE, StatusPlaces, asked_together

Contexts = Callable[[str], None]


@pytest.fixture
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contexts:
    """Writes the configuration file."""
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))

    def write(text: str) -> None:
        (tmp_path / "config.yaml").write_text(f"contexts: {{{text}}}")

    return write


@pytest.mark.usefixtures("no_restart_awaited")
def test_contexts_have_a_row_each_and_one_that_fails_stops_no_other(
    cluster: CrashedClusterOnDisk, tmp_path: Path, contexts: Contexts, tieredctl: Tieredctl
) -> None:
    _, store, *_ = cluster.store
    contexts(
        f'down: {{bootstrapServer: "127.0.0.1:{free_ports(1)[0]}"}}, '
        'broken: {bootstrapServer: "127.0.0.1:1", commandConfig: /no/such}, '
        f"gone: {{store: 'file:{tmp_path}/no', layout: local}}, "
        f"here: {{store: '{store}', layout: aiven}}"
    )

    outcome, table = tieredctl("status", "--all-contexts", "-o", "json"), tieredctl("status", "--all-contexts")

    rows = {row["context"]: row for row in outcome.document()["items"]}
    assert (outcome.exit_code, table.exit_code) == (5, 5)
    assert rows["down"]["findings"] is None
    assert {name for name, row in rows.items() if row["problem"] is not None} == {"down", "broken", "gone"}
    assert len([line for line in table.err.splitlines() if line.startswith("gone: ")]) == 1


def test_of_a_context_with_a_store_alone_what_the_store_holds_is_shown(
    captures: Path, contexts: Contexts, tieredctl: Tieredctl
) -> None:
    store = f"file:{captures / 'kafka-4.3.1' / 'remote' / 'kafka-tiered-storage'}"
    contexts(f"archive: {{store: '{store}'}}")

    table = tieredctl("status", "--all-contexts")
    (row,) = tieredctl("status", "--all-contexts", "-o", "jsonl").lines()
    alone = tieredctl("status", "--store", store, "-o", "json").document()["summary"]["store"]

    heading, shown = (line.split() for line in table.out.splitlines())
    assert (table.exit_code, row["store"], row["topics"]) == (0, alone, None)
    assert dict(zip(heading[:5], shown, strict=False))["TOPICS"] == str(alone["topics"])


def test_whatever_goes_wrong_with_a_context_the_others_are_shown(
    tmp_path: Path, contexts: Contexts, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts(f"bad: {{store: 'file:/'}}, good: {{store: 'file:{tmp_path}'}}")
    for fault in (RuntimeError("boom"), MemoryError(), OSError(5, "I/O error"), ImportError("none")):

        def status_or_fault(places: StatusPlaces, clock: Clock, fault: Exception = fault) -> Status:
            if places.store is not None and places.store.url == "file:/":
                raise fault
            return Status(clock.now_ms)

        monkeypatch.setattr("tieredctl.cli.commands.status.status_of", status_or_fault)

        outcome = tieredctl("status", "--all-contexts", "-o", "json")

        bad, good = outcome.document()["items"]
        assert (outcome.exit_code, bad["problem"] is None, good["problem"]) == (5, False, None), fault


def test_contexts_are_asked_at_the_same_time(
    contexts: Contexts, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{number}" for number in range(MOST_AT_ONCE)]
    contexts(", ".join(f"{name}: {{store: file:/}}" for name in names))
    together = Barrier(len(names), timeout=SECONDS)

    def status_with_the_others(places: StatusPlaces, clock: Clock) -> Status:
        together.wait()
        return Status(clock.now_ms)

    monkeypatch.setattr("tieredctl.cli.commands.status.status_of", status_with_the_others)

    outcome = tieredctl("status", "--all-contexts", "-o", "json")

    assert outcome.exit_code == 0
    assert [row["context"] for row in outcome.document()["items"]] == names


def test_no_thread_that_asks_a_context_loads_a_client_library(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "contexts:\n"
        '  kafka: {bootstrapServer: "127.0.0.1:1"}\n'
        "  s3: {store: 's3://bucket', storeOptions: {profile: no-such}}\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.abc, sys, threading\n"
        "from tieredctl.cli.main import run\n"
        "class Watched(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if threading.current_thread() is not threading.main_thread():\n"
        "            print(name, file=sys.stderr)\n"
        "sys.meta_path.insert(0, Watched())\n"
        "sys.exit(run(['status', '--all-contexts', '-q', '-o', 'json']))\n"
    )
    variables = environment(TIEREDCTL_CONFIG=str(tmp_path / "config.yaml"))

    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=variables, timeout=SECONDS, check=False
    )

    assert (done.returncode, len(json.loads(done.stdout)["items"])) == (5, 2), done.stderr
    circular = {"kafka", "confluent_kafka", "numpy", "pyarrow"}
    loaded = done.stderr.split()
    assert not [name for name in loaded if name.partition(".")[0] in circular or name == "boto3"]


def test_ctrl_c_waits_for_no_context() -> None:
    answers = Event()

    def interrupted_while_it_waits(_: object) -> None:
        interrupt_main()
        answers.wait(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        asked_together(interrupted_while_it_waits, [None])
    answers.set()


def test_all_contexts_take_no_other_place_and_have_to_be_there(contexts: Contexts, tieredctl: Tieredctl) -> None:
    contexts("")
    assert tieredctl("status", "--all-contexts").err.startswith("tieredctl: There are no contexts.")
    contexts("here: {store: 's3://x'}")
    for words in (("--store", "s3://x"), ("--result", "/x"), ("--context", "here")):
        assert tieredctl("status", "--all-contexts", *words).exit_code == 2, words
