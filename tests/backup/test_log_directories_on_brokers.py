"""Brokers with several log directories (KIP-858), and with one of its own for the cluster's metadata, come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backup.drill import FOUR, Drill, Topics, both, demand_same_rows, new_drill, produce_one_each, producing
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC
from tests.rigs.three_brokers import Node
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties

pytestmark = pytest.mark.integration

SECONDS = 60
UNFINISHED = b"version=unfinished\n"
"""What the first of several folders has as meta.properties until all are filled."""


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[Drill]:
    with new_drill("4.3.1", FOUR, tmp_path, log_dirs=2, with_metadata_log_dir=[3]) as drill:
        yield drill


def replicas(node: Node, topics: Topics) -> set[tuple[str, str | None]]:
    """The replicas that it has of some topics, and of the metadata topic, each with the id of its directory."""
    names = {f"{topic}-{number}" for topic, (count, _) in topics.items() for number in range(count)}
    names |= {f"{METADATA_TOPIC}-{number}" for number in range(METADATA_PARTITIONS)}
    return {
        (name, read_meta_properties((folder / META_PROPERTIES_FILE).read_bytes()).directory_id)
        for folder in node.log_dirs
        for name in names
        if (folder / name).exists()
    }


def all_replicas(drill: Drill) -> dict[int, set[tuple[str, str | None]]]:
    return {node.node_id: replicas(node, drill.topics) for node in drill.brokers.nodes.values()}


def test_brokers_with_several_disks_come_back_with_each_replica_on_the_disk_that_it_was_on(drill: Drill) -> None:
    with producing(drill):
        wait_until(drill.are_all_tiered, "segments are copied", SECONDS)
        assert drill.backup().exit_code == ExitCode.CLEAN
        drill.end_expiry()
    before, were_in = both(drill), all_replicas(drill)
    drill.lose_disks()

    plan = drill.come_back()

    demand_same_rows(drill.topics, before, both(drill), plan)
    assert produce_one_each(drill) == {place: one["nextOffset"] for place, one in plan.items()}
    assert all_replicas(drill) == were_in
    for node in drill.brokers.nodes.values():
        assert len({directory for _, directory in were_in[node.node_id]}) == 2, "both disks have replicas"
        with_metadata = [one for one in node.folders if (one / CLUSTER_METADATA_FOLDER).exists()]
        assert with_metadata == [node.metadata_log_dir or node.log_dir]


def test_a_broker_does_not_start_from_folders_that_are_not_all_filled(drill: Drill) -> None:
    node = drill.first
    node.kill()
    meta = node.log_dir / META_PROPERTIES_FILE
    whole = meta.read_bytes()
    meta.write_bytes(UNFINISHED)

    node.launch()

    wait_until(lambda: not node.running, "the broker gives up", SECONDS)
    assert "Encountered I/O error in metadata log directory" in node.server_log.read_text(errors="replace")
    meta.write_bytes(whole)
    node.start()
    drill.brokers.await_whole()
