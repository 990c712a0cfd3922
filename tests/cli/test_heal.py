"""`heal` on captured stores: what it shows, what it asks for, what it records, and how it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.test_recover_indexes import CONFIRMED, SEGMENT_ID, STEM
from tests.rigs.killed_runs import checksums, killed_runs
from tieredctl.ops.guards.own_objects import ACCEPTED_FOLDER, QUARANTINE

Heal = Callable[..., Outcome]
FOLDER = STEM.partition("/")[0]
HEALED = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")


@pytest.fixture
def whole(capture: Path) -> Path:
    return capture / "remote" / "kafka-tiered-storage"


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    """A copy of the partition's folder."""
    shutil.copytree(whole / FOLDER, tmp_path / "store" / FOLDER)
    return tmp_path / "store"


@pytest.fixture
def lost(store: Path) -> Path:
    """The log of a segment, which is gone."""
    log = store / f"{STEM}.log"
    log.unlink()
    return log


@pytest.fixture
def words(data: Path, store: Path) -> list[str | Path]:
    return ["--store", f"file:{store}", "--log-dir", data, "-o", "json"]


@pytest.fixture
def heal(words: list[str | Path], tieredctl: Tieredctl) -> Heal:
    return lambda *more: tieredctl("heal", *words, *more)


@pytest.fixture
def verify(words: list[str | Path], tieredctl: Tieredctl) -> Heal:
    return lambda *more: tieredctl("verify", "--level", "full", "--topic", "orders7", "--partition", "0", *words, *more)


def test_sound_segments_are_clean(heal: Heal) -> None:
    outcome = heal("--topic", "orders7", "--partition", "0")

    document = outcome.document()
    assert (outcome.exit_code, document["kind"], document["items"]) == (0, "HealingPlan", [])
    assert (document["summary"]["segments"], document["summary"]["toWrite"]) == (30, 0)


def test_segments_are_named_in_exactly_one_way(heal: Heal, tmp_path: Path) -> None:
    for more in ((), ("--all", "--segment-id", SEGMENT_ID), ("--all", "--result", tmp_path / "result.json")):
        assert heal(*more).exit_code == 2, more


def test_a_plan_names_source_and_place_and_changes_nothing(heal: Heal, lost: Path, whole: Path, store: Path) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for more in ((), (*CONFIRMED, "--dry-run")):
        outcome = heal("--segment-id", SEGMENT_ID, "--from-store", f"file:{whole}", *more)

        (item,) = outcome.document()["items"]
        assert (outcome.exit_code, item["part"], item["condition"], item["action"]) == (3, "log", "missing", "put")
        assert (item["source"], item["from"]) == ("store", f"file:{whole}/{STEM}.log")
        assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_what_verify_reported_is_healed_from_a_replicas_disk(
    heal: Heal, verify: Heal, lost: Path, whole: Path, tmp_path: Path
) -> None:
    replica = tmp_path / "disk" / "orders7-0"
    replica.mkdir(parents=True)
    shutil.copy(whole / f"{STEM}.log", replica / f"{39:020}.log")
    (replica / "partition.metadata").write_text("version: 0\ntopic_id: Ex-aw3fEQIi3do0H9Y7cKQ")
    result = tmp_path / "verified.json"
    result.write_text(verify().out)

    outcome = heal("--result", result, "--from-log-dir", tmp_path / "disk", *CONFIRMED)

    (item,) = outcome.document()["items"]
    assert (outcome.exit_code, item["source"], item["healed"]) == (0, "disk", True), outcome.err
    assert lost.read_bytes() == (whole / f"{STEM}.log").read_bytes()
    assert verify().exit_code == 0


def test_a_result_that_names_no_segment_is_not_all_sound(
    heal: Heal, verify: Heal, lost: Path, whole: Path, tmp_path: Path
) -> None:
    of_lost = verify().document()
    result = tmp_path / "verified.json"
    for items, complete, more, code in (
        ([], True, (), 0),
        ([], False, (), 5),
        (of_lost["items"], False, ("--from-store", f"file:{whole}", *CONFIRMED), 5),
    ):
        result.write_text(json.dumps(of_lost | {"items": items, "summary": {"complete": complete}}))

        outcome = heal("--result", result, *more)

        assert outcome.exit_code == code, outcome.err
        assert "are sound" not in outcome.err
    assert lost.exists()


def test_what_nothing_has_stays_lost_until_that_is_accepted(heal: Heal, verify: Heal, lost: Path, store: Path) -> None:
    planned = heal("--segment-id", SEGMENT_ID, *CONFIRMED)
    unaccepted = verify()

    outcome = heal("--segment-id", SEGMENT_ID, "--accept-loss", *CONFIRMED)

    accepted = verify()
    assert (planned.exit_code, unaccepted.exit_code) == (4, 4)
    assert (outcome.exit_code, [one["accepted"] for one in outcome.document()["items"]]) == (0, [True]), outcome.err
    assert (accepted.exit_code, [one["code"] for one in accepted.document()["items"]]) == (0, ["accepted-loss"])
    assert not lost.exists()
    assert heal("--segment-id", SEGMENT_ID).exit_code == 0
    assert len([*(store / ACCEPTED_FOLDER).iterdir()]) == 1


def test_what_stays_lost_beside_what_is_healed_counts_as_before(heal: Heal, lost: Path, store: Path) -> None:
    other = next(one for one in (store / FOLDER).glob("*.log") if one != lost)
    (other.with_suffix(".timeindex")).unlink()
    segments = ("--segment-id", SEGMENT_ID, "--segment-id", other.stem.partition("-")[2])

    planned, outcome = heal(*segments), heal(*segments, *CONFIRMED)

    summary = outcome.document()["summary"]
    assert (planned.exit_code, outcome.exit_code) == (4, 4), outcome.err
    assert (summary["healed"], summary["impossible"]) == (1, 1)


def test_a_loss_is_believed_for_exactly_what_was_accepted(heal: Heal, verify: Heal, lost: Path, store: Path) -> None:
    heal("--segment-id", SEGMENT_ID, "--accept-loss", *CONFIRMED)
    (record,) = (store / ACCEPTED_FOLDER).iterdir()
    sealed, other = record.read_bytes(), next(one for one in (store / FOLDER).glob("*.log") if one != lost)
    body, _, _ = sealed.partition(b"\n")

    # Another condition of the same object.
    lost.write_bytes(b"garbage")
    damaged = verify()
    lost.unlink()
    # The same condition of another object.
    other_log = other.read_bytes()
    other.unlink()
    of_another = verify()
    other.write_bytes(other_log)
    # A record that somebody altered, and one without a seal.
    document = json.loads(body)
    record.write_bytes(sealed.replace(document["losses"][0]["segment_id"].encode(), b"A" * 22))
    altered = verify()
    record.write_bytes(body + b"\n")
    unsealed = verify()
    record.write_bytes(sealed)

    assert [one.exit_code for one in (damaged, of_another, altered, unsealed)] == [4, 4, 4, 4]
    assert verify().exit_code == 0


def test_damaged_bytes_that_were_accepted_are_healed_when_they_turn_up(
    heal: Heal, verify: Heal, store: Path, whole: Path
) -> None:
    log = store / f"{STEM}.log"
    log.write_bytes(log.read_bytes()[:500])
    heal("--segment-id", SEGMENT_ID, "--accept-loss", *CONFIRMED)
    assert verify().exit_code == 0

    outcome = heal("--segment-id", SEGMENT_ID, "--from-store", f"file:{whole}", *CONFIRMED)

    (item,) = outcome.document()["items"]
    assert (outcome.exit_code, item["source"]) == (0, "store"), outcome.err
    assert len((store / item["quarantinedAs"]).read_bytes()) == 500
    assert log.read_bytes() == (whole / f"{STEM}.log").read_bytes()


@pytest.mark.parametrize("command", [("heal", "--segment-id"), ("recover", "indexes")])
def test_where_the_metadata_names_no_cluster_a_copy_is_of_the_one_that_was_confirmed(
    command: tuple[str, ...], data: Path, store: Path, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    for folder in data.glob("__remote_log_metadata-*"):
        shutil.copytree(folder, tmp_path / "unnamed" / folder.name)
    (store / f"{STEM}.timeindex").write_bytes(b"garbage")
    words = ("--store", f"file:{store}", "--log-dir", tmp_path / "unnamed", "-o", "json")

    outcome = tieredctl(*command, SEGMENT_ID, *words, *CONFIRMED)

    document = outcome.document()
    (copy,) = (one["quarantinedAs"] for one in document["items"] if one["quarantinedAs"])
    assert (outcome.exit_code, document["source"]["clusterId"]) == (0, None), outcome.err
    assert copy.startswith(f"{QUARANTINE}clusters/{CONFIRMED[-1]}/")


@pytest.mark.parametrize("is_dry_run", [True, False])
def test_the_copy_of_what_was_replaced_is_neither_purged_nor_called_out_of_its_place(
    heal: Heal, words: list[str | Path], store: Path, whole: Path, tieredctl: Tieredctl, is_dry_run: bool
) -> None:
    index = store / f"{STEM}.timeindex"
    index.write_bytes(b"garbage")
    (healed,) = heal("--segment-id", SEGMENT_ID, *CONFIRMED).document()["items"]
    confirmed = [word for word in CONFIRMED if word != "--apply"]
    at_once = ("--older-than", "0s", "--allow-young", "--max-percent", "100", "--offline-metadata", *confirmed)

    def purged() -> Outcome:
        return tieredctl("orphans", "purge", *words, *at_once, *(["--dry-run"] if is_dry_run else []))

    in_place = purged()
    index.unlink()
    gone = purged()

    summary = in_place.document()["summary"]
    assert (in_place.exit_code, summary["replaced"], summary["done"], summary["skipped"]) == (0, 1, 0, 0), in_place.err
    (found,) = gone.document()["summary"]["findings"]
    assert (gone.exit_code, found["code"], found["evidence"]["key"]) == (4, "object-missing", f"{STEM}.timeindex")
    assert (store / healed["quarantinedAs"]).read_bytes() == b"garbage"


def test_a_log_comes_back_that_was_lost_with_its_transaction_index(
    heal: Heal, lost: Path, store: Path, whole: Path
) -> None:
    index = store / f"{STEM}.txnindex"
    index.unlink()

    outcome = heal("--segment-id", SEGMENT_ID, "--from-store", f"file:{whole}", *CONFIRMED)

    assert (outcome.exit_code, {one["source"] for one in outcome.document()["items"]}) == (0, {"store"}), outcome.err
    assert [path.read_bytes() for path in (lost, index)] == [
        (whole / path.relative_to(store)).read_bytes() for path in (lost, index)
    ]


def test_a_removed_copy_in_quarantine_needs_no_option(heal: Heal, lost: Path, whole: Path, store: Path) -> None:
    log = whole / f"{STEM}.log"
    size, name = log.stat().st_size, f"{STEM}.log"
    copy = store / f".tieredctl/quarantine/clusters/-/plan/{name}~{size}~1~v"
    copy.parent.mkdir(parents=True)
    shutil.copy(log, copy)

    outcome = heal("--segment-id", SEGMENT_ID, *CONFIRMED)

    assert (outcome.exit_code, outcome.document()["items"][0]["source"]) == (0, "quarantine"), outcome.err
    assert lost.read_bytes() == log.read_bytes()


def damaged(random: Random, objects: Sequence[Path]) -> None:
    """Each of them gone, cut, empty, altered by a bit, or with the bytes of another; beside a log that is none of the
    segment's any more the others are gone: with one that contradicts every log, none is taken for the right one."""
    for path in objects:
        if path.suffix != ".log" and any(one.suffix == ".log" for one in objects):
            path.unlink()
            continue
        data = path.read_bytes()
        flipped = bytearray(data or b"1")
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        harmed = random.choice([None, data[: len(data) // 2], b"", bytes(flipped), b"others' bytes"])
        path.unlink() if harmed is None else path.write_bytes(harmed)


def test_killed_at_any_moment_it_ends_where_one_run_would(
    data: Path, store: Path, whole: Path, words: list[str | Path], tmp_path: Path
) -> None:
    begun, before = tmp_path / "begun", checksums(store)
    for number, log in enumerate(sorted((store / FOLDER).glob("*.log"))[:12]):
        objects = sorted(path for path in store.glob(f"{FOLDER}/{log.stem}.*") if path.suffix in HEALED)
        damaged(Random(number), Random(number).sample(objects, 2))
    store.rename(begun)
    command = ["heal", "--topic", "orders7", "--partition", "0", "--from-store", f"file:{whole}", *words, *CONFIRMED]

    def begin() -> None:
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(begun, store)

    damage = checksums(begun)
    harmed = {key: damage.get(key.replace(str(store), str(begun))) for key in before}

    for moment in killed_runs(command, store, begin, lambda: checksums(store), [whole, data]):
        now = checksums(store)
        assert all(now.get(key) in (harmed[key], before[key]) for key in before), moment
    assert checksums(store) == before
    kept = {sha256(path.read_bytes()).hexdigest() for path in (store / QUARANTINE).rglob("*") if path.is_file()}
    assert {was for key, was in harmed.items() if was not in (None, before[key])} <= kept


def test_what_cannot_be_a_source_is_refused(heal: Heal, store: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for more in (
        ("--from-store", f"file:{store}"),
        ("--from-store-option", "a=b"),
        ("--from-log-dir", tmp_path / "empty"),
        ("--from-log-dir", tmp_path / "none"),
    ):
        outcome = heal("--segment-id", SEGMENT_ID, *more)

        assert (outcome.exit_code, outcome.out) == (2, ""), (more, outcome.err)
