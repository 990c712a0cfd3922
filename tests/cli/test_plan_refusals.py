"""What `orphans plan` refuses: each with its own words and exit code, and no plan left."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import (
    AFTER_IT_RAN,
    AGED,
    CLUSTER_ID,
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


def lose_last_partition(log_dir: Path) -> None:
    shutil.rmtree(log_dir / "__remote_log_metadata-3")


def lose_first_partition(log_dir: Path) -> None:
    shutil.rmtree(log_dir / "__remote_log_metadata-0")


def lose_all_but_one_partition(log_dir: Path) -> None:
    for number in (1, 2, 3):
        shutil.rmtree(log_dir / f"__remote_log_metadata-{number}")


def lose_half_of_the_partitions(log_dir: Path) -> None:
    for number in (2, 3):
        shutil.rmtree(log_dir / f"__remote_log_metadata-{number}")


CERTAIN_LOSS = [lose_last_partition, lose_first_partition]
POSSIBLE_LOSS = [lose_all_but_one_partition, lose_half_of_the_partitions]
"""What is left fits a topic of one partition, or of two, as well as one of four."""


@pytest.mark.parametrize("lose", [cut_short, damage, compact, lose_a_log, *CERTAIN_LOSS])
def test_no_plan_is_made_from_half_of_the_history(
    cluster: CrashedClusterOnDisk, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    half = replace(cluster, log_dir=metadata_of(cluster, tmp_path / "half"))
    lose(half.log_dir)
    before = cluster.objects()

    outcome = half.plan(*AGED, *ENOUGH)

    assert outcome.exit_code == 5
    said: dict[Callable[[Path], None], str] = dict.fromkeys(CERTAIN_LOSS, "is missing here")
    said[cut_short] = "metadata-truncated"
    assert said.get(lose, "on incomplete metadata") in outcome.err
    assert not cluster.plan_file.exists()
    assert cluster.objects() == before


def test_an_empty_store_is_another_one_or_was_emptied(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = replace(cluster, store=("--store", f"file:{tmp_path / 'empty'}"))

    scanned, made = empty.scan(), empty.plan(*AGED)

    for outcome in (scanned, made):
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert "is empty, but the metadata promises segments: it is another bucket or prefix" in outcome.err
    assert not empty.plan_file.exists()


def test_what_no_event_names_is_an_orphan_only_where_other_copies_have_its_records(
    cluster: CrashedClusterOnDisk,
) -> None:
    put(cluster, COPIED_AGAIN, modified=WHILE_IT_RAN)
    put(cluster, NEVER_NAMED, modified=WHILE_IT_RAN)

    assert verdict_on(cluster, COPIED_AGAIN) == ("orphan", "no-metadata", 3)
    assert verdict_on(cluster, NEVER_NAMED) == ("unknown", None, 3)


def test_a_list_of_keys_does_not_say_what_came_after_the_first_event(
    cluster: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{COPIED_AGAIN}\n")
    os.utime(keys, (WHILE_IT_RAN, WHILE_IT_RAN))

    (found,) = cluster.scan("--key-list", keys, "-o", "jsonl").lines()

    assert (found["status"], found["cause"]) == ("unknown", None)


@pytest.mark.parametrize("lose", CERTAIN_LOSS)
def test_a_scan_of_half_of_the_history_is_incomplete(
    cluster: CrashedClusterOnDisk, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    half = replace(cluster, log_dir=metadata_of(cluster, tmp_path / "half"))
    lose(half.log_dir)
    put(cluster, COPIED_AGAIN, modified=WHILE_IT_RAN)

    scanned = half.scan("-o", "json")

    causes = scanned.document()["summary"]["causes"]
    assert (scanned.exit_code, causes["no-metadata"]["objects"]) == (5, 0)
    assert verdict_on(half, COPIED_AGAIN)[0] == "unknown"


@pytest.mark.parametrize("lose", POSSIBLE_LOSS)
def test_events_that_may_be_in_a_partition_that_is_not_here_are_no_proof(
    cluster: CrashedClusterOnDisk, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    half = replace(cluster, log_dir=metadata_of(cluster, tmp_path / "half"))
    lose(half.log_dir)
    put(cluster, NEVER_NAMED, modified=WHILE_IT_RAN)

    assert verdict_on(half, NEVER_NAMED)[0] == "unknown"


def test_metadata_that_cannot_be_read_at_all_is_refused(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    outcome = replace(cluster, log_dir=tmp_path / "missing").plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "There is no" in outcome.err


REFUSED_PLANS = {
    "age": (("--min-age", "59m", *ENOUGH), "younger than an hour"),
    "share that is none": ((*AGED, "--max-percent", "nan"), "nan"),
    "cluster": ((*AGED, *ENOUGH, "--cluster-id", OTHER_CLUSTER_ID), f"cluster {CLUSTER_ID}, not {OTHER_CLUSTER_ID}"),
    "topic": ((*AGED, *ENOUGH, "--foreign", "half-an-id"), "is not a Kafka id"),
    "duration": ((*AGED, *ENOUGH, "--valid-for", "soon"), "is not a duration"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED_PLANS.values(), ids=REFUSED_PLANS)
def test_what_was_asked_for_is_refused(cluster: CrashedClusterOnDisk, words: tuple[str, ...], said: str) -> None:
    before = cluster.objects()

    outcome = cluster.plan(*words)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert said in outcome.err
    assert not cluster.plan_file.exists()
    assert cluster.objects() == before


@pytest.mark.parametrize("most", [(), ("--max-percent", "23"), ("--max-percent", "0")])
def test_a_plan_of_too_large_a_share_is_there_to_be_looked_at_and_is_not_applied(
    cluster: CrashedClusterOnDisk, most: tuple[str, ...]
) -> None:
    before = cluster.objects()

    planned = cluster.plan(*AGED, *most, "-o", "json")
    shown = cluster.tieredctl("orphans", "show", cluster.plan_file, "-o", "json")
    applied = cluster.apply(*AGED, *most)

    assert (planned.exit_code, planned.document()["summary"]["neededPercent"]) == (3, 24)
    assert (shown.exit_code, len(shown.document()["items"])) == (0, ORPHANS)
    assert (applied.exit_code, "--max-percent 24" in applied.err) == (2, True)
    assert without_own(cluster.objects()) == before


def test_a_plan_that_is_there_is_not_replaced(planned: CrashedClusterOnDisk) -> None:
    before = planned.plan_file.read_bytes()

    outcome = planned.plan(*AGED, *ENOUGH)

    assert outcome.exit_code == 1
    assert "Give --force to replace it" in outcome.err
    assert planned.plan_file.read_bytes() == before


def test_metadata_that_knows_no_topic_of_the_store_is_refused(cluster: CrashedClusterOnDisk, captures: Path) -> None:
    outcome = replace(cluster, log_dir=captures / "aiven-plain-4.3.1/data").plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "knows no topic with objects in" in outcome.err


def test_a_store_of_another_layout_is_refused(cluster: CrashedClusterOnDisk, captures: Path, tmp_path: Path) -> None:
    local = ("--store", f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}")

    outcome = replace(cluster, store=local).plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "Layout aiven explains none" in outcome.err


OTHER_ROOTS = {
    "another layout's": "elsewhere/events7-0-5_2hUucOSiuBES5fbXncQw/00000000000000000000-GO1yWZckTOapkLtIH_MiCg.log",
    "the same layout's": "backup/" + FOREIGN,
    "far below": "some/where/else/" + FOREIGN,
}


@pytest.mark.parametrize("key", OTHER_ROOTS.values(), ids=OTHER_ROOTS)
def test_a_root_inside_the_root_is_refused(cluster: CrashedClusterOnDisk, key: str) -> None:
    put(cluster, key)

    outcome = cluster.plan(*AGED, *ENOUGH, "--layout-option", "key-prefix=tiered/")

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "contains another store's root" in outcome.err


def test_a_root_inside_the_root_is_found_beside_other_files(cluster: CrashedClusterOnDisk) -> None:
    key = OTHER_ROOTS["another layout's"]
    put(cluster, key)
    put(cluster, key.rpartition("/")[0] + "/.first-of-its-folder")

    outcome = cluster.plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "contains another store's root" in outcome.err


def test_another_roots_quarantine_inside_the_root_is_refused(cluster: CrashedClusterOnDisk) -> None:
    put(cluster, "tiered/.tieredctl/quarantine/0123/orders33/some.log")

    outcome = cluster.plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (2, False)
    assert "contains the quarantine of another root" in outcome.err


def test_a_root_inside_a_quarantine_is_refused(planned: CrashedClusterOnDisk) -> None:
    plan_id = plan_lines(planned.plan_file)[0]["planId"]
    planned.apply()
    inside = ("--store", f"file:{planned.bucket}/.tieredctl/quarantine/{plan_id}")
    before = planned.objects()

    outcome = replace(planned, store=inside).plan(*AGED, "--max-percent", "100", "--force")

    assert outcome.exit_code == 2
    assert "quarantine" in outcome.err
    assert planned.objects() == before


@pytest.mark.parametrize(
    ("words", "most_objects", "most_bytes"),
    [(("--max-objects", "7"), 7, None), (("--max-bytes", "5000"), None, 5_000), (("--max-objects", "0"), 0, None)],
)
def test_limits_leave_the_rest_for_another_plan(
    cluster: CrashedClusterOnDisk, words: tuple[str, str], most_objects: int | None, most_bytes: int | None
) -> None:
    outcome = cluster.plan(*AGED, *words, "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 0
    assert summary["planned"] + summary["left"] == ORPHANS
    assert most_objects is None or summary["planned"] == most_objects
    assert most_bytes is None or 0 < summary["bytes"] <= most_bytes


def test_foreign_and_unknown_objects_are_planned_only_if_named(cluster: CrashedClusterOnDisk) -> None:
    put(cluster, FOREIGN, modified=AFTER_IT_RAN)
    put(cluster, "tiered/notes.txt")

    cluster.plan(*AGED, *ENOUGH)
    unnamed = planned_keys(cluster.plan_file)
    cluster.plan(*AGED, *ENOUGH, "--force", "--foreign", FOREIGN_TOPIC_ID, "--unknown", "tiered/notes.txt")
    named = planned_keys(cluster.plan_file)

    assert named - unnamed == {FOREIGN, "tiered/notes.txt"}
    assert cluster.apply().exit_code == 0
    assert not {FOREIGN, "tiered/notes.txt"} & set(cluster.objects())


def test_what_is_named_is_left_alone_all_the_same_while_it_is_young(cluster: CrashedClusterOnDisk) -> None:
    for key in (FOREIGN, "tiered/notes.txt"):
        os.utime(put(cluster, key))

    cluster.plan(*AGED, *ENOUGH, "--foreign", FOREIGN_TOPIC_ID, "--unknown", "tiered/notes.txt")

    assert not {FOREIGN, "tiered/notes.txt"} & planned_keys(cluster.plan_file)


def test_while_the_stores_clock_is_another_nothing_is_planned(
    cluster: CrashedClusterOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileStore, "time_ms", lambda _: time.time_ns() // 1_000_000 - 600_000)

    outcome = cluster.plan(*AGED, *ENOUGH)

    assert (outcome.exit_code, cluster.plan_file.exists()) == (1, False)
    assert "10 minutes behind" in outcome.err
