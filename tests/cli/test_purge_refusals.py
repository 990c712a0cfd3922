"""What `orphans purge` refuses: nothing is deleted for good by metadata that cannot know whose it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    CLUSTER_ID,
    ENOUGH,
    ORPHANS,
    OTHER_CLUSTER_ID,
    CrashedClusterOnDisk,
    deleted_topic_id,
    live_topic_ids,
    metadata_of,
    plan_lines,
    put,
    without_lease,
    without_own,
)
from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.commands import orphans_apply, orphans_purge, orphans_restore
from tieredctl.ops.guards.own_objects import BYTES_OF_COPIES, QUARANTINE
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.quarantine_keys import quarantined as quarantined_as
from tieredctl.ports.object_store import RESERVED_FOLDER, StoredObject

OF_THE_DELETED_TOPIC = 78
"""Objects of its finished segments."""
IN_FIRST_METADATA_PARTITION = 16
"""How many of the orphans have their events there."""


@pytest.mark.parametrize("ledger", ["kept", "lost", "damaged", "of the wrong cluster"])
def test_what_is_of_another_cluster_or_layout_unconfirmed_or_young_is_not_deleted(
    quarantined: CrashedClusterOnDisk, captures: Path, tmp_path: Path, ledger: str
) -> None:
    """By metadata of another cluster, or that says it is of this one and knows none of its objects."""
    alter_ledger(quarantined, ledger)
    another, own = captures / "aiven-plain-4.3.1/data", ("--offline-metadata", "--log-dir", quarantined.log_dir)
    impostor = metadata_of(replace(quarantined, log_dir=another), tmp_path / "impostor")
    shutil.copy(quarantined.log_dir / "meta.properties", impostor)
    aiven, sure = ("--layout", "aiven", "--offline-metadata", "--log-dir"), ("--yes", "--cluster-id", CLUSTER_ID)
    by_another = ("--yes", "--cluster-id", OTHER_CLUSTER_ID)
    before = without_lease(quarantined.objects())
    refused: dict[str, tuple[str | Path, ...]] = {"another cluster": (*AT_ONCE, *aiven, another, *by_another)}
    if ledger != "of the wrong cluster":
        refused |= {
            "another layout": (*AT_ONCE, *own, "--layout", "local", *sure),
            "an impostor": (*AT_ONCE, *aiven, impostor, *sure),
        }
    if ledger == "kept":
        refused |= {
            "unconfirmed": (*AT_ONCE, *own),
            "no cluster": (*AT_ONCE, *own, "--yes"),
            "the wrong cluster": (*AT_ONCE, *own, *by_another),
            "hardly in quarantine": ("--older-than", "59m", *aiven, quarantined.log_dir, *sure),
        }
    for case, words in refused.items():
        outcome = quarantined.tieredctl("orphans", "purge", *quarantined.store, *words)

        assert (outcome.exit_code, without_lease(quarantined.objects()) == before) == (2, True), (case, outcome.err)
    if ledger == "kept":
        rehearsed, young = quarantined.purge(*AT_ONCE, "--dry-run"), quarantined.purge("--older-than", "7d")

        assert (rehearsed.exit_code, young.exit_code) == (0, 0)
        assert without_lease(quarantined.objects()) == before


def test_events_that_may_be_in_a_partition_that_is_not_here_keep_what_they_may_name(
    quarantined: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    half = replace(quarantined, log_dir=metadata_of(quarantined, tmp_path / "half"))
    for number in (1, 2, 3):
        shutil.rmtree(half.log_dir / f"__remote_log_metadata-{number}")

    outcome = half.purge(*AT_ONCE, "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 5
    assert (summary["done"], summary["skipped"]) == (IN_FIRST_METADATA_PARTITION, ORPHANS - IN_FIRST_METADATA_PARTITION)


def test_no_more_of_the_store_is_deleted_for_good_than_is_allowed(quarantined: CrashedClusterOnDisk) -> None:
    for words, code in (((), 2), (("--max-percent", "23"), 2), (("--max-percent", "24"), 0)):
        outcome = quarantined.purge("--older-than", "0s", "--allow-young", *words, "-o", "json")

        assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (code, 0 if code else ORPHANS), words


def as_older_releases_named_it(cluster: CrashedClusterOnDisk) -> None:
    """Without the cluster's id, what the object was, and notes about its bytes."""
    shutil.rmtree(cluster.bucket / BYTES_OF_COPIES)
    plan_id = plan_lines(cluster.plan_file)[0]["planId"]
    for file in [file for file in (cluster.bucket / QUARANTINE).rglob("*") if file.is_file()]:
        found = quarantined_as(file.relative_to(cluster.bucket).as_posix())
        assert found is not None
        older = cluster.bucket / QUARANTINE / plan_id / found.key
        older.parent.mkdir(parents=True, exist_ok=True)
        file.rename(older)


def test_copies_of_older_releases_are_purged_where_the_ledger_tells_whose_they_are(
    quarantined: CrashedClusterOnDisk,
) -> None:
    as_older_releases_named_it(quarantined)

    outcome = quarantined.purge(*AT_ONCE, "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (0, ORPHANS)


@pytest.mark.parametrize("ledger", ["lost", "damaged"])
def test_copies_that_nothing_tells_whose_they_are_stay(quarantined: CrashedClusterOnDisk, ledger: str) -> None:
    as_older_releases_named_it(quarantined)
    alter_ledger(quarantined, ledger)
    before = without_lease(quarantined.objects())

    outcome = quarantined.purge(*AT_ONCE, "-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["unproven"]) == (5, 0, ORPHANS)
    assert without_lease(quarantined.objects()) == before


def alter_ledger(cluster: CrashedClusterOnDisk, how: str) -> None:
    (file,) = (cluster.bucket / RESERVED_FOLDER / "plans").iterdir()
    if how == "lost":
        file.unlink()
    elif how == "damaged":
        file.write_bytes(b"{")
    elif how != "kept":
        file.write_text(file.read_text().replace(CLUSTER_ID, OTHER_CLUSTER_ID))


@pytest.fixture
def without_a_topic(cluster: CrashedClusterOnDisk) -> tuple[CrashedClusterOnDisk, Path]:
    """A cluster that is no more, with a deleted topic's objects in quarantine, and the list of the other topics."""
    live = cluster.folder / "live-topic-ids"
    live.write_text("\n".join(live_topic_ids(cluster)) + "\n")
    cluster.plan(*ENOUGH, *AGED, "--cause", "topic-gone", "--live-topic-ids", live)
    assert cluster.apply("--live-topic-ids", live).exit_code == 0
    return cluster, live


def test_objects_of_gone_topics_are_purged_only_by_what_tells_which_topics_there_are(
    without_a_topic: tuple[CrashedClusterOnDisk, Path],
) -> None:
    """Where nobody tells, nothing is called lost; what a live topic owns and lacks is."""
    cluster, live = without_a_topic
    before, without = without_lease(cluster.objects()), live.read_text()

    untold = cluster.purge(*AT_ONCE, "-o", "json")
    live.write_text(without + deleted_topic_id(cluster) + "\n")
    lost = cluster.purge(*AT_ONCE, "--live-topic-ids", live)
    left = without_lease(cluster.objects())
    live.write_text(without)
    purged = cluster.purge(*AT_ONCE, "--live-topic-ids", live, "-o", "json")

    summary = untold.document()["summary"]
    assert (untold.exit_code, summary["done"], summary["skipped"]) == (5, 0, OF_THE_DELETED_TOPIC)
    assert (lost.exit_code, "object-missing" in lost.err, left == before) == (4, True, True)
    assert (purged.exit_code, purged.document()["summary"]["done"]) == (0, OF_THE_DELETED_TOPIC)


def test_a_forged_copy_takes_nothing_along(quarantined: CrashedClusterOnDisk) -> None:
    live = {key for key in quarantined.objects() if not key.startswith(RESERVED_FOLDER)}
    for key in sorted(live):
        name = quarantine_key(CLUSTER_ID, "0" * 32, StoredObject(key, 1, 0, "1"))
        put(quarantined, name, b"x")
    before = without_own(quarantined.objects())

    quarantined.purge(*AT_ONCE, "--max-percent", "100")

    assert without_own(quarantined.objects()) == before


def ledger_that_names_what_is_live(cluster: CrashedClusterOnDisk, live: Iterable[str], **altered: object) -> None:
    """And copies in quarantine of it all, as if the plan had made them."""
    (file,) = (cluster.bucket / RESERVED_FOLDER / "plans").iterdir()
    names = {"unknownKeys": sorted(live), "foreignTopicIds": live_topic_ids(cluster)}
    file.write_text(json.dumps(json.loads(file.read_text()) | names | altered))
    for key in live:
        put(cluster, quarantine_key(CLUSTER_ID, file.stem, StoredObject(key, 6, 0, "1")), b"forged")


def run(cluster: CrashedClusterOnDisk, command: str, *of_purge: str) -> Outcome:
    return cluster.purge(*of_purge) if command == "purge" else getattr(cluster, command)()


@pytest.mark.parametrize("command", ["apply", "restore", "purge"])
def test_a_ledger_and_a_quarantine_that_name_what_is_live_touch_nothing_live(
    quarantined: CrashedClusterOnDisk, command: str
) -> None:
    (ledger,) = (quarantined.bucket / RESERVED_FOLDER / "plans").iterdir()
    written, before = ledger.read_bytes(), without_own(quarantined.objects())
    for altered in ({}, {"use": "applying"}, {"use": "restored"}, {"digest": None}, {"layout": ""}):
        ledger.write_bytes(written)
        ledger_that_names_what_is_live(quarantined, before, **altered)

        run(quarantined, command, *AT_ONCE, "--max-percent", "100")

        after = without_own(quarantined.objects())
        assert {key: after.get(key) for key in before} == before, altered


def test_a_host_whose_clock_is_days_off_changes_nothing(
    quarantined: CrashedClusterOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = without_lease(quarantined.objects())
    for days in (-2, 2):
        for module in (orphans_apply, orphans_restore, orphans_purge):
            monkeypatch.setattr(module, "clock_ms", lambda days=days: clock_ms() + days * 24 * 3_600_000)
        for command in ("apply", "restore", "purge"):
            outcome = run(quarantined, command, "--older-than", "1h", *ENOUGH)

            assert outcome.exit_code != 0, (command, days)
            assert command == "apply" or f"minutes {'behind' if days > 0 else 'ahead of'} this host's" in outcome.err
            assert without_lease(quarantined.objects()) == before, (command, days)


@pytest.mark.parametrize("in_place", [b"other bytes", None])
def test_the_only_copy_of_what_is_live_is_kept_whatever_lies_in_its_place(
    quarantined: CrashedClusterOnDisk, in_place: bytes | None
) -> None:
    live = next(iter(sorted(quarantined.bucket.glob("tiered/events33-*/0/*.log"))))
    key, data = live.relative_to(quarantined.bucket).as_posix(), live.read_bytes()
    (plan,) = (quarantined.bucket / QUARANTINE / "clusters" / CLUSTER_ID).iterdir()
    copy = put(quarantined, quarantine_key(CLUSTER_ID, plan.name, StoredObject(key, len(data), 0, "v")), data)
    live.write_bytes(data if in_place is None else (in_place * len(data))[: len(data)])

    purged = quarantined.purge(*AT_ONCE)

    assert (purged.exit_code, copy.exists()) == ((0, False) if in_place is None else (5, True))
