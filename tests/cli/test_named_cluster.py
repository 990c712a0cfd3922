"""--cluster-id: a command of another cluster than the one that was named ends with an error, planned or applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cleaned_nodes import node_to_clean
from tests.cli.command_line import Tieredctl
from tests.cli.command_tree import commands
from tests.cli.crashed_cluster import CLUSTER_ID, CrashedClusterOnDisk
from tests.moved_log_starts import moved_node, plan, written
from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.errors import ExitCode

Words = tuple[str | Path, ...]
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"
SEGMENT_ID = "SXPtPShuQRaI-uuxV2yi7g"
TOPIC_ID = "G4i52LJdRBel-FDnehx_Kw"
NAMING = {("diskless", "orphans", "plan"), ("diskless", "orphans", "purge")}
"""The control plane does not know its cluster: the option names it."""
LIVE = {("topic", "enable"), ("topic", "disable"), ("snapshot", "fetch"), ("partition", "remove"), ("backup", "run")}
APPLY = ("--apply", "--yes")


def of_files(cluster: CrashedClusterOnDisk, folder: Path) -> dict[tuple[str, ...], list[Words]]:
    """Commands of a cluster that is down, each as it only shows a plan and as it changes something."""
    metadata: Words = ("--log-dir", cluster.log_dir)
    offline: Words = (*metadata, "--offline-metadata")
    store: Words = (*cluster.store, "--layout", "aiven")
    wal, node = folder / "wal", folder / "node"
    wal.mkdir()
    node_to_clean(node)
    moved_node(folder / "moved")
    manifest = folder / "sets" / CLUSTER_ID / "manifests/00000001.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    sets: Words = ("--from", f"file:{folder / 'sets'}")
    restoring: Words = (*sets, "--store", f"file:{wal}", "--node", f"1={folder / 'other'}")
    on_wal: Words = ("--store", f"file:{wal}", *offline)
    return {
        ("orphans", "plan"): [(*store, *metadata, "--to", folder / "other", *more) for more in ((), ("--dry-run",))],
        ("orphans", "apply"): [(cluster.plan_file, *offline, *more) for more in (("--yes",), ("--dry-run",))],
        ("orphans", "purge"): [
            (*store, *offline, "--older-than", "1h", *more) for more in (("--yes",), ("--dry-run",))
        ],
        ("diskless", "orphans", "apply"): [
            (cluster.plan_file, "--control-plane", "service=none", *more) for more in (("--yes",), ("--dry-run",))
        ],
        ("heal",): [("--segment-id", SEGMENT_ID, *store, *metadata, *more) for more in ((), APPLY)],
        ("recover", "indexes"): [(SEGMENT_ID, *store, *metadata, *more) for more in ((), APPLY)],
        ("recover", "metadata"): [(*store, *metadata)],
        ("wal", "clean"): [(*on_wal, *more) for more in ((), APPLY)],
        ("wal", "purge"): [(*on_wal, "--older-than", "1h", *more) for more in ((), APPLY)],
        ("wal", "upload"): [("--store", f"file:{wal}", *metadata, *more) for more in ((), APPLY)],
        ("recover", "log-starts"): [
            (written(folder / "moved.json", plan()), "--log-dir", folder / "moved", *more) for more in ((), APPLY)
        ],
        ("backup", "status"): [sets],
        ("backup", "verify"): [sets],
        ("backup", "prune"): [(*sets, "--keep-last", "1", *more) for more in ((), APPLY)],
        ("restore", "plan"): [restoring],
        ("restore", "apply"): [(*restoring, *more) for more in (("--yes",), ("--dry-run",))],
        ("store", "copy"): [
            (*cluster.store, *metadata, "--to", f"file:{wal}", *more) for more in ((), ("--apply",), APPLY)
        ],
        ("snapshot", "clean"): [(node, "--metadata-max-retention-ms", "1000", *more) for more in ((), APPLY)],
    }


@pytest.fixture
def demand_refused(tieredctl: Tieredctl) -> Callable[[tuple[str, ...], Words], None]:
    def demand(command: tuple[str, ...], words: Words) -> None:
        outcome = tieredctl(*command, *words, "--cluster-id", OTHER)

        assert outcome.exit_code == ExitCode.USAGE, (command, words, outcome.out, outcome.err)
        assert OTHER in outcome.err, (command, words, outcome.err)

    return demand


def test_nothing_of_another_cluster_is_planned_or_changed(
    planned: CrashedClusterOnDisk, tmp_path: Path, demand_refused: Callable[[tuple[str, ...], Words], None]
) -> None:
    table = of_files(planned, tmp_path)
    taking = {words for words, command in commands() if any("--cluster-id" in one.opts for one in command.params)}
    assert taking == table.keys() | LIVE | NAMING
    before = planned.objects()

    for command, lines in table.items():
        for words in lines:
            demand_refused(command, words)

    assert planned.objects() == before
    assert not (tmp_path / "other").exists()


def test_the_right_cluster_is_not_refused(planned: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    words = (*planned.store, "--log-dir", planned.log_dir, "--cluster-id", CLUSTER_ID)

    assert tieredctl("recover", "metadata", *words).exit_code != ExitCode.USAGE


@pytest.mark.integration
def test_nothing_of_another_running_cluster_is_planned_or_changed(
    kafka_4: DrivenBroker, tmp_path: Path, demand_refused: Callable[[tuple[str, ...], Words], None]
) -> None:
    there: Words = ("--bootstrap-server", kafka_4.broker.bootstrap_server)
    table: dict[tuple[str, ...], list[Words]] = {
        ("topic", "enable"): [("a-topic", *there, *more) for more in ((), APPLY)],
        ("topic", "disable"): [("a-topic", "--delete", *there, *more) for more in ((), APPLY)],
        ("partition", "remove"): [
            (f"{TOPIC_ID}:0", "--store", f"file:{tmp_path}", "--layout", "local", *there, *more) for more in ((), APPLY)
        ],
        ("backup", "run"): [("--to", f"file:{tmp_path}", *there, *more) for more in ((), ("--dry-run",))],
        ("snapshot", "fetch"): [("--to", tmp_path, *there, *more) for more in ((), ("--dry-run",))],
    }
    assert table.keys() == LIVE

    for command, lines in table.items():
        for words in lines:
            demand_refused(command, words)
