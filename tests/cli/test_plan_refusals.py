"""What `orphans plan` refuses: each with its own words and exit code, and no plan left."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import (
    AFTER_IT_RAN,
    AGED,
    COPIED_AGAIN,
    ENOUGH,
    FOREIGN,
    FOREIGN_TOPIC_ID,
    NEVER_NAMED,
    ORPHANS,
    OTHER_CLUSTER_ID,
    WHILE_IT_RAN,
    CrashedClusterOnDisk,
    metadata_of,
    plan_lines,
    planned_keys,
    put,
    verdict_on,
    without_own,
)
from tieredctl.formats.record_batches import LOG_OVERHEAD
from tieredctl.storage.file import FileStore


def cut_short(log_dir: Path) -> None:
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\n__remote_log_metadata 1 20\n")


def damage(log_dir: Path) -> None:
    log = log_dir / "__remote_log_metadata-1/00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[2_000] ^= 1
    log.write_bytes(data)


def compact(log_dir: Path) -> None:
    log = log_dir / "__remote_log_metadata-1/00000000000000000000.log"
    data = log.read_bytes()
    second = int.from_bytes(data[8:12]) + LOG_OVERHEAD
    third = second + int.from_bytes(data[second + 8 : second + 12]) + LOG_OVERHEAD
    log.write_bytes(data[:second] + data[third:])


def lose_a_log(log_dir: Path) -> None:
    """Its folder is there, and `metadata_of` copies none of the checkpoints that would tell how long it was."""
    (log_dir / "__remote_log_metadata-1/00000000000000000000.log").unlink()


def lose(*partitions: int) -> Callable[[Path], None]:
    def lost(log_dir: Path) -> None:
        for number in partitions:
            shutil.rmtree(log_dir / f"__remote_log_metadata-{number}")

    return lost


CERTAIN_LOSS = [lose(3), lose(0)]
POSSIBLE_LOSS = [lose(1, 2, 3), lose(2, 3)]
"""What is left fits a topic of one partition, or of two, as well as one of four."""


@pytest.fixture
def halves(cluster: CrashedClusterOnDisk, tmp_path: Path) -> Callable[..., Iterator[CrashedClusterOnDisk]]:
    """The cluster with each of these losses in its metadata."""

    def with_each(losses: Sequence[Callable[[Path], None]]) -> Iterator[CrashedClusterOnDisk]:
        for number, lose_some in enumerate(losses):
            half = replace(cluster, log_dir=metadata_of(cluster, tmp_path / f"half-{number}"))
            lose_some(half.log_dir)
            yield half

    return with_each


def test_no_plan_is_made_from_half_of_the_history(
    cluster: CrashedClusterOnDisk, halves: Callable[..., Iterator[CrashedClusterOnDisk]]
) -> None:
    before = cluster.objects()
    for half in halves([cut_short, damage, compact, lose_a_log, *CERTAIN_LOSS]):
        outcome = half.plan(*AGED, *ENOUGH)

        assert (outcome.exit_code, cluster.plan_file.exists()) == (5, False), half.log_dir
        if half.log_dir.name == "half-0":
            assert "metadata-truncated" in outcome.err
    assert cluster.objects() == before


def test_what_no_event_names_is_an_orphan_only_where_other_copies_have_its_records(
    cluster: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    """And a list of keys does not say what came after the first event."""
    put(cluster, COPIED_AGAIN, modified=WHILE_IT_RAN)
    put(cluster, NEVER_NAMED, modified=WHILE_IT_RAN)
    keys = tmp_path / "keys"
    keys.write_text(f"{COPIED_AGAIN}\n")
    os.utime(keys, (WHILE_IT_RAN, WHILE_IT_RAN))

    (listed,) = cluster.scan("--key-list", keys, "-o", "jsonl").lines()

    assert verdict_on(cluster, COPIED_AGAIN) == ("orphan", "no-metadata", 3)
    assert verdict_on(cluster, NEVER_NAMED) == ("unknown", None, 3)
    assert (listed["status"], listed["cause"]) == ("unknown", None)


def test_events_that_are_or_may_be_in_a_partition_that_is_not_here_are_no_proof(
    cluster: CrashedClusterOnDisk, halves: Callable[..., Iterator[CrashedClusterOnDisk]]
) -> None:
    put(cluster, COPIED_AGAIN, modified=WHILE_IT_RAN)
    put(cluster, NEVER_NAMED, modified=WHILE_IT_RAN)
    for number, half in enumerate(halves([*CERTAIN_LOSS, *POSSIBLE_LOSS])):
        scanned = half.scan("-o", "json")

        document = scanned.document()
        status = {item["key"]: item["status"] for item in document["items"]}
        assert status[NEVER_NAMED] == "unknown", number
        if number < len(CERTAIN_LOSS):
            assert (scanned.exit_code, document["summary"]["causes"]["no-metadata"]["objects"]) == (5, 0), number
            assert status[COPIED_AGAIN] == "unknown", number


REFUSED_PLANS = {
    "age": ("--min-age", "59m", *ENOUGH),
    "share that is none": (*AGED, "--max-percent", "nan"),
    "cluster": (*AGED, *ENOUGH, "--cluster-id", OTHER_CLUSTER_ID),
    "topic": (*AGED, *ENOUGH, "--foreign", "half-an-id"),
    "duration": (*AGED, *ENOUGH, "--valid-for", "soon"),
}


def test_what_was_asked_for_is_refused(cluster: CrashedClusterOnDisk, captures: Path, tmp_path: Path) -> None:
    """And so are metadata that is not there or knows no topic of the store, and a store of another layout."""
    before = cluster.objects()
    local = ("--store", f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}")
    places = {
        "no metadata": replace(cluster, log_dir=tmp_path / "missing"),
        "another's metadata": replace(cluster, log_dir=captures / "aiven-plain-4.3.1/data"),
        "another layout": replace(cluster, store=local),
    }
    for case in (*REFUSED_PLANS, *places):
        outcome = places.get(case, cluster).plan(*REFUSED_PLANS.get(case, (*AGED, *ENOUGH)))

        assert (outcome.exit_code, outcome.out, cluster.plan_file.exists()) == (2, "", False), case
    assert cluster.objects() == before


def test_a_plan_of_too_large_a_share_is_there_to_be_looked_at_and_is_not_applied(cluster: CrashedClusterOnDisk) -> None:
    before = cluster.objects()
    for most in ((), ("--max-percent", "23"), ("--max-percent", "0")):
        planned = cluster.plan(*AGED, *most, "-o", "json", "--force")
        shown = cluster.tieredctl("orphans", "show", cluster.plan_file, "-o", "json")
        applied = cluster.apply(*AGED, *most)

        assert (planned.exit_code, planned.document()["summary"]["neededPercent"]) == (3, 24), most
        assert (shown.exit_code, len(shown.document()["items"])) == (0, ORPHANS)
        assert (applied.exit_code, "--max-percent 24" in applied.err) == (2, True), most
        assert without_own(cluster.objects()) == before


def test_a_plan_that_is_there_is_not_replaced(planned: CrashedClusterOnDisk) -> None:
    before = planned.plan_file.read_bytes()

    outcome = planned.plan(*AGED, *ENOUGH)

    assert outcome.exit_code == 1
    assert planned.plan_file.read_bytes() == before


def test_a_root_inside_a_quarantine_is_refused(planned: CrashedClusterOnDisk) -> None:
    plan_id = plan_lines(planned.plan_file)[0]["planId"]
    planned.apply()
    inside = ("--store", f"file:{planned.bucket}/.tieredctl/quarantine/{plan_id}")
    before = planned.objects()

    outcome = replace(planned, store=inside).plan(*AGED, "--max-percent", "100", "--force")

    assert outcome.exit_code == 2
    assert planned.objects() == before


def test_foreign_and_unknown_objects_are_planned_only_if_named_and_old(cluster: CrashedClusterOnDisk) -> None:
    named = ("--foreign", FOREIGN_TOPIC_ID, "--unknown", "tiered/notes.txt")
    both = {FOREIGN, "tiered/notes.txt"}
    for key in both:
        os.utime(put(cluster, key))
    cluster.plan(*AGED, *ENOUGH, *named)
    young = planned_keys(cluster.plan_file)
    put(cluster, FOREIGN, modified=AFTER_IT_RAN)
    put(cluster, "tiered/notes.txt")

    cluster.plan(*AGED, *ENOUGH, "--force")
    unnamed = planned_keys(cluster.plan_file)
    cluster.plan(*AGED, *ENOUGH, "--force", *named)

    assert planned_keys(cluster.plan_file) - unnamed == both
    assert not both & young
    assert cluster.apply().exit_code == 0
    assert not both & set(cluster.objects())


def test_while_the_stores_clock_is_another_nothing_is_planned(
    cluster: CrashedClusterOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileStore, "time_ms", lambda _: time.time_ns() // 1_000_000 - 600_000)

    outcome = cluster.plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (1, False)
