"""What `orphans purge` refuses: nothing is deleted for good by metadata that cannot know whose it is."""

from __future__ import annotations

import json
import shutil
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


@pytest.fixture
def quarantined(planned: CrashedClusterOnDisk) -> CrashedClusterOnDisk:
    """A cluster whose orphans are in quarantine."""
    assert planned.apply().exit_code == 0
    return planned


def purge(cluster: CrashedClusterOnDisk, *words: str | Path) -> Outcome:
    return cluster.tieredctl("orphans", "purge", *cluster.store, *AT_ONCE, *words)


def test_a_purge_by_half_of_the_history_is_refused(quarantined: CrashedClusterOnDisk, tmp_path: Path) -> None:
    half = replace(quarantined, log_dir=metadata_of(quarantined, tmp_path / "half"))
    shutil.rmtree(half.log_dir / "__remote_log_metadata-0")
    before = without_lease(quarantined.objects())

    purged = half.purge(*AT_ONCE)

    assert purged.exit_code == 5
    assert "what it holds is unknown" in purged.err
    assert without_lease(quarantined.objects()) == before


def test_another_clusters_metadata_is_refused(quarantined: CrashedClusterOnDisk, captures: Path) -> None:
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", OTHER_CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", captures / "aiven-plain-4.3.1/data", "--layout", "aiven", *confirmed)

    assert outcome.exit_code == 2
    assert f"belongs to cluster {CLUSTER_ID}, not {OTHER_CLUSTER_ID}" in outcome.err
    assert without_lease(quarantined.objects()) == before


def test_another_layout_is_refused(quarantined: CrashedClusterOnDisk) -> None:
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--layout", "local", *confirmed)

    assert outcome.exit_code == 2
    assert "of layout aiven, not local" in outcome.err
    assert without_lease(quarantined.objects()) == before


@pytest.mark.parametrize("words", [(), ("--yes",), ("--yes", "--cluster-id", OTHER_CLUSTER_ID)])
def test_what_is_not_confirmed_is_not_done(quarantined: CrashedClusterOnDisk, words: tuple[str, ...]) -> None:
    before = quarantined.objects()

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--offline-metadata", *words)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert quarantined.objects() == before


def test_a_rehearsal_deletes_nothing(quarantined: CrashedClusterOnDisk) -> None:
    before = quarantined.objects()

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--offline-metadata", "--dry-run")

    assert outcome.exit_code == 0
    assert "Would delete 115 of 115" in outcome.err
    assert quarantined.objects() == before


def test_what_is_young_in_quarantine_is_kept(quarantined: CrashedClusterOnDisk) -> None:
    before = without_lease(quarantined.objects())

    outcome = quarantined.purge("--older-than", "7d")

    assert outcome.exit_code == 0
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


@pytest.mark.parametrize("ledger", ["lost", "damaged", "of the wrong cluster"])
def test_without_a_ledger_another_clusters_metadata_is_refused_too(
    quarantined: CrashedClusterOnDisk, captures: Path, ledger: str
) -> None:
    alter_ledger(quarantined, ledger)
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", OTHER_CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", captures / "aiven-plain-4.3.1/data", "--layout", "aiven", *confirmed)

    assert outcome.exit_code == 2
    assert without_lease(quarantined.objects()) == before


@pytest.mark.parametrize("ledger", ["lost", "damaged"])
def test_without_a_ledger_another_layout_is_refused_too(quarantined: CrashedClusterOnDisk, ledger: str) -> None:
    alter_ledger(quarantined, ledger)
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--layout", "local", *confirmed)

    assert outcome.exit_code == 2
    assert "knows no topic" in outcome.err
    assert without_lease(quarantined.objects()) == before


def test_metadata_that_says_it_is_of_this_cluster_and_knows_none_of_its_objects_is_refused(
    quarantined: CrashedClusterOnDisk, captures: Path, tmp_path: Path
) -> None:
    impostor = replace(quarantined, log_dir=captures / "aiven-plain-4.3.1/data")
    impostor = replace(impostor, log_dir=metadata_of(impostor, tmp_path / "impostor"))
    shutil.copy(quarantined.log_dir / "meta.properties", impostor.log_dir)
    before = without_lease(quarantined.objects())

    outcome = impostor.purge(*AT_ONCE)

    assert outcome.exit_code == 2
    assert "knows no topic" in outcome.err
    assert without_lease(quarantined.objects()) == before


def test_what_is_hardly_in_quarantine_is_not_purged_unless_that_is_asked_for_by_name(
    quarantined: CrashedClusterOnDisk,
) -> None:
    before = quarantined.objects()

    outcome = quarantined.purge("--older-than", "59m")

    assert outcome.exit_code == 2
    assert "less than an hour" in outcome.err
    assert quarantined.objects() == before


@pytest.mark.parametrize(("words", "code"), [((), 2), (("--max-percent", "23"), 2), (("--max-percent", "24"), 0)])
def test_no_more_of_the_store_is_deleted_for_good_than_is_allowed(
    quarantined: CrashedClusterOnDisk, words: tuple[str, ...], code: int
) -> None:
    outcome = quarantined.purge("--older-than", "0s", "--allow-young", *words, "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (code, 0 if code else ORPHANS)
    assert not code or "115 of the 499 objects" in outcome.err


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
    else:
        file.write_text(file.read_text().replace(CLUSTER_ID, OTHER_CLUSTER_ID))


@pytest.fixture
def without_a_topic(cluster: CrashedClusterOnDisk) -> tuple[CrashedClusterOnDisk, Path]:
    """A cluster that is no more, with a deleted topic's objects in quarantine, and the list of the other topics."""
    live = cluster.folder / "live-topic-ids"
    live.write_text("\n".join(live_topic_ids(cluster)) + "\n")
    cluster.plan(*ENOUGH, *AGED, "--cause", "topic-gone", "--live-topic-ids", live)
    assert cluster.apply("--live-topic-ids", live).exit_code == 0
    return cluster, live


def test_objects_of_gone_topics_are_purged_by_what_tells_which_topics_there_are(
    without_a_topic: tuple[CrashedClusterOnDisk, Path],
) -> None:
    cluster, live = without_a_topic

    outcome = cluster.purge(*AT_ONCE, "--live-topic-ids", live, "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (0, OF_THE_DELETED_TOPIC)


def test_where_nobody_tells_which_topics_there_are_nothing_is_called_lost(
    without_a_topic: tuple[CrashedClusterOnDisk, Path],
) -> None:
    cluster, _ = without_a_topic
    before = without_lease(cluster.objects())

    outcome = cluster.purge(*AT_ONCE, "-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["skipped"]) == (5, 0, OF_THE_DELETED_TOPIC)
    assert "--live-topic-ids" in outcome.err
    assert without_lease(cluster.objects()) == before


def test_what_a_live_topic_owns_and_lacks_is_called_lost(without_a_topic: tuple[CrashedClusterOnDisk, Path]) -> None:
    cluster, live = without_a_topic
    live.write_text(live.read_text() + deleted_topic_id(cluster) + "\n")
    before = without_lease(cluster.objects())

    outcome = cluster.purge(*AT_ONCE, "--live-topic-ids", live)

    assert outcome.exit_code == 4
    assert "object-missing" in outcome.err
    assert without_lease(cluster.objects()) == before


def test_a_forged_copy_takes_nothing_along(quarantined: CrashedClusterOnDisk) -> None:
    live = {key for key in quarantined.objects() if not key.startswith(RESERVED_FOLDER)}
    for key in sorted(live):
        name = quarantine_key(CLUSTER_ID, "0" * 32, StoredObject(key, 1, 0, "1"))
        put(quarantined, name, b"x")
    before = without_own(quarantined.objects())

    quarantined.purge(*AT_ONCE, "--max-percent", "100")

    assert without_own(quarantined.objects()) == before


def ledger_that_names_what_is_live(cluster: CrashedClusterOnDisk, **altered: object) -> None:
    """And copies in quarantine of it all, as if the plan had made them."""
    live = sorted(set(without_own(cluster.objects())))
    (file,) = (cluster.bucket / RESERVED_FOLDER / "plans").iterdir()
    names = {"unknownKeys": live, "foreignTopicIds": live_topic_ids(cluster)}
    file.write_text(json.dumps(json.loads(file.read_text()) | names | altered))
    for key in live:
        put(cluster, quarantine_key(CLUSTER_ID, file.stem, StoredObject(key, 6, 0, "1")), b"forged")


@pytest.mark.parametrize("altered", [{}, {"use": "applying"}, {"use": "restored"}, {"digest": None}, {"layout": ""}])
@pytest.mark.parametrize("command", ["apply", "restore", "purge"])
def test_a_ledger_and_a_quarantine_that_name_what_is_live_touch_nothing_live(
    quarantined: CrashedClusterOnDisk, command: str, altered: dict[str, object]
) -> None:
    ledger_that_names_what_is_live(quarantined, **altered)
    before = without_own(quarantined.objects())
    run = {
        "apply": quarantined.apply,
        "restore": quarantined.restore,
        "purge": lambda: quarantined.purge(*AT_ONCE, "--max-percent", "100"),
    }

    run[command]()

    after = without_own(quarantined.objects())
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("days", [-2, 2])
@pytest.mark.parametrize("command", ["apply", "restore", "purge"])
def test_a_host_whose_clock_is_days_off_changes_nothing(
    quarantined: CrashedClusterOnDisk, monkeypatch: pytest.MonkeyPatch, command: str, days: int
) -> None:
    for module in (orphans_apply, orphans_restore, orphans_purge):
        monkeypatch.setattr(module, "clock_ms", lambda: clock_ms() + days * 24 * 3_600_000)
    before = without_lease(quarantined.objects())
    run = {
        "apply": quarantined.apply,
        "restore": quarantined.restore,
        "purge": lambda: quarantined.purge("--older-than", "1h", *ENOUGH),
    }

    outcome = run[command]()

    assert outcome.exit_code != 0
    assert command == "apply" or f"minutes {'behind' if days > 0 else 'ahead of'} this host's" in outcome.err
    assert without_lease(quarantined.objects()) == before


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
