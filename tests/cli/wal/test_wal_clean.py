"""`tieredctl wal clean`: what goes, what stays, and that the events tell the same."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.wal.store_of_uploads import EVENTS, cut, cut_at
from tests.metadata_logs import copied, write_events
from tests.wal.killed_store import Killed, killed_after
from tests.wal.local_partitions import CLUSTER_ID, ORDERS, batch, write_partition
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.wiring.topics_place import TopicsPlace

CONFIRMED = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)


@pytest.fixture
def store(tmp_path: Path, tieredctl: Tieredctl) -> Path:
    """Three objects: one with both partitions, one with more of the second, and its end."""
    folder = tmp_path / "store"
    folder.mkdir()
    write_partition(tmp_path / "logs", ORDERS[0], [batch(offset) for offset in range(2)])
    write_partition(tmp_path / "logs", ORDERS[1], [batch(offset, size=200) for offset in range(3)])
    words = ("--log-dir", tmp_path / "logs", "--store", f"file:{folder}", "--upload-bytes", "400", "--apply")
    assert tieredctl("wal", "upload", *words).exit_code == 0
    assert len(objects(folder)) == 2
    make_old(folder)
    return folder


def make_old(store: Path) -> None:
    """Two days."""
    for path in store.glob("*.wal"):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * 86_400))


def objects(store: Path) -> list[str]:
    return sorted(path.name for path in store.glob("*.wal"))


def tiered(folder: Path, *ends: int) -> Path:
    """Metadata of remote storage that has each partition of orders up to an offset (inclusive)."""
    events = [
        event
        for number, end in enumerate(ends)
        if end >= 0
        for event in copied(100 + number, 0, end, partition=ORDERS[number])
    ]
    write_events(folder, *events)
    return folder


Clean = Callable[..., Outcome]


@pytest.fixture
def clean(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> Clean:
    """Runs `wal clean` by metadata of remote storage that has the two partitions up to these offsets."""

    def run(*words: str, ends: tuple[int, int], output: str = "json") -> Outcome:
        metadata = tiered(tmp_path / f"metadata{ends[0]}-{ends[1]}", *ends)
        source = ("--log-dir", metadata, "--offline-metadata")
        limits = () if "--max-percent" in words else ("--max-percent", "100")
        return tieredctl("wal", "clean", "--store", f"file:{store}", *source, *limits, *words, "-o", output)

    return run


def states(store: Path, tieredctl: Tieredctl) -> dict[str, set[str]]:
    """The state of each combined object, and those of its segments, by key."""
    lines = tieredctl("wal", "inspect", "--store", f"file:{store}", "-o", "jsonl").lines()
    return {line["key"]: {line["state"], *(one["state"] for one in line["segments"])} for line in lines}


def test_without_apply_nothing_is_changed(store: Path, clean: Clean) -> None:
    before = sorted(store.rglob("*"))

    outcome = clean(ends=(1, 2))

    document = outcome.document()
    assert (outcome.exit_code, sorted(store.rglob("*"))) == (0, before)
    assert document["summary"]["planned"] == 2
    assert {one["need"] for row in document["items"] for one in row["segments"]} == {"TIERED"}


def test_an_object_goes_only_when_every_partition_in_it_is_in_remote_storage(
    store: Path, clean: Clean, tieredctl: Tieredctl
) -> None:
    assert clean(ends=(0, 2)).document()["summary"]["kept"] == {"NEEDED": 1}
    assert clean(ends=(1, -1)).document()["summary"]["kept"] == {"NEEDED": 2}

    outcome = clean(*CONFIRMED, ends=(1, 1))

    assert outcome.exit_code == 0, outcome.err
    assert outcome.document()["summary"]["kept"] == {"NEEDED": 1}
    (left,) = objects(store)
    (gone,) = set(states(store, tieredctl)) - {left}
    assert states(store, tieredctl) == {left: {"COPY_SEGMENT_FINISHED"}, gone: {"DELETE_SEGMENT_FINISHED"}}
    assert tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full").exit_code == 0


def test_what_was_removed_can_be_put_back_and_is_not_taken_again(
    store: Path, clean: Clean, tieredctl: Tieredctl
) -> None:
    """Its events say that it is deleted."""
    before = {path.name: path.read_bytes() for path in store.glob("*.wal")}
    plan_id = clean(*CONFIRMED, ends=(1, 2)).document()["summary"]["planId"]
    assert objects(store) == []

    restored = tieredctl("orphans", "restore", plan_id, "--store", f"file:{store}")
    make_old(store)
    again = clean(*CONFIRMED, "--delete", ends=(1, 2))

    assert (restored.exit_code, again.exit_code) == (0, 0), restored.err
    assert {path.name: path.read_bytes() for path in store.glob("*.wal")} == before
    assert again.document()["summary"]["kept"] == {"PUT_BACK": 2}
    for note in (store / ".tieredctl/removed").rglob("*.gz"):
        note.write_bytes(b"?")
    assert clean(*CONFIRMED, "--delete", ends=(1, 2)).exit_code == 5
    assert {path.name: path.read_bytes() for path in store.glob("*.wal")} == before


@pytest.mark.parametrize("level", ["listing", "full"])
def test_what_is_cleaned_while_a_verification_runs_is_not_missing(
    level: str, store: Path, clean: Clean, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, head, list_all, cleaned = FileStore.read, FileStore.head, FileStore.list, list[str]()

    def clean_before(key: str) -> None:
        if key.endswith(".wal") and not cleaned:
            cleaned.append(key)
            assert clean(*CONFIRMED, ends=(1, 2)).exit_code == 0

    def reading(self: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        clean_before(key)
        return read(self, key, start, end)

    def asking(self: FileStore, key: str) -> StoredObject | None:
        clean_before(key)
        return head(self, key)

    def listing(self: FileStore, *words: str, **named: str) -> Iterator[StoredObject]:
        lacks = level == "listing" and not cleaned
        return (one for one in list_all(self, *words, **named) if not (lacks and one.key.endswith(".wal")))

    with monkeypatch.context() as patched:
        for name, instead in (("read", reading), ("head", asking), ("list", listing)):
            patched.setattr(FileStore, name, instead)
        outcome = tieredctl("wal", "verify", "--store", f"file:{store}", "--level", level, "-o", "json")

    assert (len(cleaned), objects(store)) == (1, [])
    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


def test_more_than_the_allowed_share_of_the_store_never_goes(store: Path, clean: Clean) -> None:
    planned = clean("--max-percent", "50", ends=(1, 2))
    refused = clean("--max-percent", "50", *CONFIRMED, ends=(1, 2))
    half = clean("--max-percent", "50", *CONFIRMED, ends=(1, 1))

    summary = planned.document()["summary"]
    assert (planned.exit_code, summary["planned"], summary["neededPercent"]) == (3, 2, 100)
    assert "give --max-percent 100." in planned.err
    assert "--apply makes the change" not in planned.err
    assert refused.exit_code == 2
    assert half.document()["summary"]["neededPercent"] is None
    assert (half.exit_code, len(objects(store))) == (0, 1)


def test_while_the_stores_clock_is_another_nothing_is_shown_as_old_enough(
    store: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileStore, "time_ms", lambda _: time.time_ns() // 1_000_000 - 600_000)

    planned, applied = clean(ends=(1, 2)), clean(*CONFIRMED, ends=(1, 2))

    assert (planned.exit_code, applied.exit_code, planned.out) == (1, 1, "")
    assert "minutes behind this host's" in planned.err
    assert len(objects(store)) == 2


def test_old_copies_are_deleted_for_good_but_not_what_was_put_back(
    store: Path, clean: Clean, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = clean(*CONFIRMED, ends=(1, 2)).document()["summary"]["planId"]
    copies = [path for path in store.rglob("*") if "quarantine" in str(path) and path.is_file()]
    source = ("--log-dir", tmp_path / "metadata1-2", "--offline-metadata")
    words = ("wal", "purge", "--store", f"file:{store}", *source, "--cluster-id", CLUSTER_ID, "-o", "json")
    assert tieredctl(*words, "--older-than", "1h").document()["summary"]["planned"] == 0
    assert tieredctl(*words, "--older-than", "59m").exit_code == 2
    for path in copies:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 7_200))
    planned = tieredctl(*words, "--older-than", "1h").document()["summary"]["planned"]
    original = min(objects(store), default=None)

    refused = tieredctl(*words, "--older-than", "1h", "--apply", "--yes")
    assert refused.exit_code == 2
    assert all(path.exists() for path in copies)
    purged = tieredctl(*words, "--older-than", "1h", "--apply", "--yes", "--max-percent", "100")

    assert (planned, original, purged.exit_code) == (len(copies), None, 0), purged.err
    assert not any(path.exists() for path in copies)
    assert tieredctl("orphans", "restore", plan_id, "--store", f"file:{store}").exit_code == 5


@pytest.fixture
def old_copies(store: Path, clean: Clean) -> list[Path]:
    """Both objects, in quarantine for two hours."""
    assert clean(*CONFIRMED, ends=(1, 2)).exit_code == 0
    copies = [path for path in store.rglob("*") if "quarantine" in str(path) and path.is_file()]
    for path in copies:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 7_200))
    return copies


@pytest.fixture
def purge(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> Callable[..., Outcome]:
    """Runs `wal purge` by the metadata that `old_copies` went by."""
    source = ("--log-dir", tmp_path / "metadata1-2", "--offline-metadata", "--max-percent", "100")
    words = ("wal", "purge", "--store", f"file:{store}", *source, "--older-than", "1h", "-o", "json")
    return lambda *more: tieredctl(*words, "--cluster-id", CLUSTER_ID, *more)


def test_copies_that_nothing_tells_whose_they_are_stay_and_a_purge_that_kept_any_is_not_complete(
    store: Path, old_copies: list[Path], purge: Callable[..., Outcome]
) -> None:
    shutil.rmtree(store / ".tieredctl/plans")
    folder = store / ".tieredctl/quarantine/clusters" / CLUSTER_ID
    (kept,) = old_copies[:1]
    unknown = folder.with_name("-") / kept.relative_to(folder)
    unknown.parent.mkdir(parents=True)
    kept.rename(unknown)
    before = unknown.read_bytes()

    planned, purged = purge(), purge("--apply", "--yes")
    nothing_else = purge("--apply", "--yes")

    for outcome, done in ((planned, None), (purged, 1), (nothing_else, None)):
        summary = outcome.document()["summary"]
        assert (outcome.exit_code, summary.get("done"), summary["kept"], summary["unproven"]) == (5, done, 1, 1)
        assert "1 more copy was kept: their cluster is unknown." in outcome.err
    assert unknown.read_bytes() == before
    assert not old_copies[1].exists()


def test_what_is_purged_is_not_all_where_the_cluster_does_not_say_which_topics_are_live(
    old_copies: list[Path], purge: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicsPlace, "open", silent)

    planned, purged = purge(), purge("--apply", "--yes")

    assert (planned.exit_code, purged.exit_code) == (5, 5)
    for outcome in (planned, purged):
        assert "It is unknown which topics are live: no broker answered." in outcome.err


def test_with_delete_there_is_no_copy_and_then_nothing_left_to_do(
    store: Path, clean: Clean, tieredctl: Tieredctl
) -> None:
    """What was stored a moment ago stays."""
    os.utime(store / objects(store)[0])
    young = clean(ends=(1, 2)).document()["summary"]
    make_old(store)

    assert clean(*CONFIRMED, "--delete", ends=(1, 2)).exit_code == 0
    again = clean(*CONFIRMED, ends=(1, 2))

    assert (young["planned"], young["kept"]) == (1, {"TOO_YOUNG": 1})
    assert not list(store.rglob("quarantine"))
    assert list(states(store, tieredctl).values()) == [{"DELETE_SEGMENT_FINISHED"}] * 2
    summary = again.document()["summary"]
    assert (again.exit_code, summary["planned"], summary["eventsOnly"]) == (0, 0, 0)


WRITES = 20
"""Of a run that nothing stops."""


@pytest.mark.parametrize("boundary", cut_at(WRITES))
def test_killed_before_any_of_its_writes_no_reader_misses_an_object_and_the_next_run_ends_it(
    boundary: int, store: Path, clean: Clean, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        written = killed_after(patched, boundary if boundary < WRITES else None)
        with suppress(Killed):
            assert clean(*CONFIRMED, ends=(1, 2)).exit_code == 0
    assert len(written) == boundary
    known = states(store, tieredctl)
    assert all(key in objects(store) or "COPY_SEGMENT_FINISHED" not in state for key, state in known.items())

    # In its place: five minutes, after which a lease is no longer held.
    (store / ".tieredctl/lease.json").unlink(missing_ok=True)
    again = clean(*CONFIRMED, ends=(1, 2))

    assert again.exit_code == 0, again.err
    assert objects(store) == []
    assert list(states(store, tieredctl).values()) == [{"DELETE_SEGMENT_FINISHED"}] * 2
    # It went on under the same plan's id, and nothing is left of that to do.
    (plan,) = (store / ".tieredctl/plans").iterdir()
    assert '"applied"' in plan.read_text()


def test_what_a_killed_run_removed_and_is_needed_now_is_put_back_by_the_next(
    store: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in store.glob("*.wal")}
    with monkeypatch.context() as patched:
        delete = FileStore.delete

        def deleting(self: FileStore, some: Sequence[StoredObject]) -> None:
            delete(self, some)
            raise Killed

        patched.setattr(FileStore, "delete", deleting)
        with suppress(Killed):
            clean(*CONFIRMED, ends=(1, 2))
    assert objects(store) == []

    again = clean(*CONFIRMED, ends=(1, -1))

    assert (again.exit_code, again.document()["summary"]["kept"]) == (0, {"NEEDED": 2}), again.err
    assert {path.name: path.read_bytes() for path in store.glob("*.wal")} == before
    assert clean(ends=(1, -1)).document()["summary"]["planned"] == 0


@pytest.mark.parametrize(("which", "damage"), [(min, Path.unlink), (max, cut)], ids=["the first lost", "the last cut"])
def test_by_damaged_events_nothing_goes(
    which: Callable[..., Path], damage: Callable[[Path], None], store: Path, clean: Clean
) -> None:
    damage(which((store / EVENTS).iterdir()))
    before = objects(store)

    outcome = clean(*CONFIRMED, ends=(1, 2))

    assert (outcome.exit_code, objects(store)) == (5, before)


def test_by_the_metadata_of_another_cluster_or_what_cannot_be_decided_nothing_goes(
    store: Path, clean: Clean, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    write_events(tmp_path / "other", *copied(1, 0, 9))
    for words in (
        ("--log-dir", tmp_path / "other", "--offline-metadata", *CONFIRMED),
        (),
        ("--offline-metadata",),
        ("--give-up-after", "5m"),
        ("--min-age", "5m"),
    ):
        assert tieredctl("wal", "clean", "--store", f"file:{store}", *words)[:2] == (2, ""), words
    assert clean("--apply", "--cluster-id", CLUSTER_ID, ends=(1, 2)).exit_code == 2
    assert len(objects(store)) == 2


class SilentCluster:
    """A `TopicLookup` that is never answered."""

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return dict.fromkeys(topic_ids)

    def describe(self) -> Document:
        return {"kind": "cluster", "bootstrapServer": "broker:9092", "unanswered": "no broker answered."}


@contextmanager
def silent(_place: TopicsPlace, _now_ms: int) -> Iterator[TopicSources]:
    yield TopicSources(cluster=SilentCluster())


def test_where_the_cluster_does_not_say_which_topics_are_live_what_went_is_not_all(
    store: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicsPlace, "open", silent)

    planned, applied = clean(ends=(1, 1)), clean(*CONFIRMED, ends=(1, 1))

    assert (planned.exit_code, applied.exit_code, len(objects(store))) == (5, 5, 1)
    for outcome in (planned, applied):
        assert "It is unknown which topics are live: no broker answered." in outcome.err
