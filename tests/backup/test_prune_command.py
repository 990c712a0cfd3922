"""`backup prune` by the command line: what it shows, asks for and leaves, on folders and real buckets, and stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Lie, Rule
from tests.rigs.killed_runs import killed_runs
from tests.rigs.lies import dropped, left_out, one_bit_flipped, stored_altered
from tests.rigs.object_servers import ObjectServer
from tests.rigs.stopped_process import INT, KILL, TWICE, Change, Moment, Stop, let_the_lease_run_out, run_until
from tests.rigs.versioned_bucket import VersionedBucket
from tieredctl.errors import ExitCode
from tieredctl.ops.guards.own_objects import LEASE_KEY


def words_of(sets: CapturedSets, *more: str) -> list[str]:
    return ["backup", "prune", "--from", f"file:{sets.folder}", *more, "-o", "json"]


def apply_words(sets: CapturedSets, *more: str) -> list[str]:
    return words_of(sets, *more, "--apply", *sets.confirmed)


def own_files(sets: CapturedSets) -> dict[str, bytes]:
    """What is in the place of the sets, but for tieredctl's own objects."""
    paths = (path for path in sets.files() if ".tieredctl" not in path.parts)
    return {path.relative_to(sets.folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def chains(sets: CapturedSets) -> CapturedSets:
    """Sets 1 and 2, and 3 and 4 that need neither."""
    sets.add(full=True)
    sets.add()
    return sets


def test_a_plan_changes_nothing_and_applying_it_leaves_whole_sets(
    chains: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    before = own_files(chains)
    planned = tieredctl(*words_of(chains, "--keep-last", "2"))
    dry = tieredctl(*apply_words(chains, "--keep-last", "2"), "--dry-run")
    unconfirmed = tieredctl(*words_of(chains, "--keep-last", "2"), "--apply", "--yes")

    assert (planned.exit_code, dry.exit_code, own_files(chains)) == (ExitCode.CLEAN, ExitCode.CLEAN, before)
    assert (unconfirmed.exit_code, own_files(chains)) == (ExitCode.USAGE, before)
    assert [(one["set"], one["action"]) for one in planned.document()["items"]] == [
        *((number, "remove") for number in (1, 2)),
        *((number, "keep") for number in (3, 4)),
    ]

    by_each = restored(chains, tmp_path, tieredctl, 3, 4)
    done = tieredctl(*apply_words(chains, "--keep-last", "2"))

    summary, left = done.document()["summary"], own_files(chains)
    assert (done.exit_code, summary["done"]) == (ExitCode.CLEAN, 2)
    assert summary["bytes"] == sum(len(data) for key, data in before.items() if not _kept(key))
    assert left == {key: data for key, data in before.items() if _kept(key)} | {
        note: left[note] for note in left.keys() - before.keys()
    }
    demand_whole(chains, tieredctl, 3, 4)
    assert restored(chains, tmp_path, tieredctl, 3, 4) == by_each
    chains.add()
    demand_whole(chains, tieredctl, 3, 4, 5)


def _kept(key: str) -> bool:
    return "/00000003" in key or "/00000004" in key


def restored(sets: CapturedSets, folder: Path, tieredctl: Tieredctl, *numbers: int) -> dict[int, object]:
    """What would come back by each of these sets."""
    found: dict[int, object] = {}
    for number in numbers:
        planned = tieredctl("restore", "plan", *sets.words(f"1={folder}/node"), "--set", str(number), "-o", "json")
        # Records were on disks alone, and the captured events are not whole.
        assert planned.exit_code in (ExitCode.FINDINGS, ExitCode.INCOMPLETE), planned.err
        found[number] = planned.exit_code, planned.document()["items"]
    return found


def demand_whole(sets: CapturedSets, tieredctl: Tieredctl, *numbers: int) -> None:
    """That these sets, and no others, are there and whole."""
    verified = tieredctl("backup", "verify", "--from", f"file:{sets.folder}", "-o", "json")
    status = tieredctl("backup", "status", "--from", f"file:{sets.folder}", "-o", "json").document()
    assert verified.exit_code == ExitCode.CLEAN, verified.out
    assert [one["set"] for one in status["items"]] == [*numbers]
    assert status["summary"]["newestRestorable"] == numbers[-1]


def test_rules_have_to_be_given(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    for more in ((), ("--keep-last", "0"), ("--keep-within", "soon")):
        assert tieredctl(*words_of(sets, *more)).exit_code == ExitCode.USAGE, more


def test_what_stays_only_since_a_later_one_needs_it_is_said(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    sets.add()

    outcome = tieredctl(*words_of(sets, "--keep-last", "1"))

    assert outcome.document()["summary"]["planned"] == 0
    assert "1 set would go" in outcome.err


def test_where_all_that_should_have_stayed_is_lost_that_is_said(chains: CapturedSets, tieredctl: Tieredctl) -> None:
    stopped = run_until(Moment("remove .*manifests/"), KILL, chains.folder, apply_words(chains, "--keep-last", "1"))
    assert stopped.exit_code == -KILL
    for number in (3, 4):
        (chains.folder / chains.cluster_id / f"manifests/{number:08}.json").unlink()
    place = ("--from", f"file:{chains.folder}")

    for cluster in ((), ("--cluster-id", chains.cluster_id)):
        assert tieredctl("backup", "verify", *place, *cluster).exit_code == ExitCode.CORRUPTION, cluster
        assert tieredctl("backup", "status", *place, *cluster).exit_code == ExitCode.FINDINGS, cluster
        assert tieredctl(*words_of(chains, "--keep-last", "1"), *cluster).exit_code == ExitCode.CORRUPTION, cluster
    restore = ("restore", "plan", *chains.words("1"))
    assert tieredctl(*restore).exit_code == ExitCode.CORRUPTION
    assert tieredctl(*restore, "--set", "2").exit_code in (ExitCode.FINDINGS, ExitCode.INCOMPLETE), "still there"


def test_where_nothing_is_old_enough_nothing_is_asked_or_written(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*words_of(sets, "--keep-within", "30d"), "--apply")

    assert (outcome.exit_code, outcome.document()["summary"]["planned"]) == (ExitCode.CLEAN, 0)
    assert not (sets.folder / LEASE_KEY).exists()


def test_a_place_in_which_another_run_is_busy_is_left_alone(chains: CapturedSets, tieredctl: Tieredctl) -> None:
    words, before = apply_words(chains, "--keep-last", "1"), own_files(chains)
    stopped = run_until(Moment("remove .*manifests/"), KILL, chains.folder, words)
    assert stopped.exit_code == -KILL

    refused = tieredctl(*words)

    assert refused.exit_code == ExitCode.LOCKED
    assert own_files(chains).items() >= before.items()


def test_a_place_that_is_moved_away_meanwhile_is_not_made_again(chains: CapturedSets, tieredctl: Tieredctl) -> None:
    words = apply_words(chains, "--keep-last", "1")
    run_until(Moment("remove .*manifests/", 2), KILL, chains.folder, words)
    moved = chains.folder.with_name("moved")
    chains.folder.rename(moved)

    refused = tieredctl(*words)

    assert (refused.exit_code, chains.folder.exists()) == (ExitCode.USAGE, False)
    moved.rename(chains.folder)
    let_the_lease_run_out(chains.folder, KILL)
    assert tieredctl(*words).exit_code == ExitCode.CLEAN
    assert tieredctl("backup", "verify", "--from", f"file:{chains.folder}").exit_code == ExitCode.CLEAN


@pytest.mark.parametrize("stop", [INT, pytest.param(TWICE, marks=pytest.mark.exhaustive)])
def test_interrupted_what_is_said_finishes_the_work(chains: CapturedSets, stop: Stop) -> None:
    def is_whole() -> bool:
        return all((chains.folder / key).exists() for key in kept)

    kept = [key for key in own_files(chains) if _kept(key)]
    words = apply_words(chains, "--keep-last", "1")
    is_done = lambda: not [key for key in own_files(chains) if not _kept(key)]  # noqa: E731

    Change(
        words, chains.folder, "remove .*manifests/", is_whole, is_done, number=1, is_whole_at_once=True
    ).demand_finished(stop)


def test_killed_at_any_moment_what_is_kept_is_whole_and_the_next_run_ends_it(
    chains: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    words = apply_words(chains, "--keep-last", "1")
    begun = shutil.copytree(chains.folder, tmp_path / "begun")
    kept = {key: data for key, data in own_files(chains).items() if _kept(key)}

    def begin() -> None:
        shutil.rmtree(chains.folder)
        shutil.copytree(begun, chains.folder)

    for moment in killed_runs(words, chains.folder, begin, lambda: own_files(chains), [chains.store, chains.data]):
        assert own_files(chains).items() >= kept.items(), moment
        assert tieredctl("backup", "verify", "--from", f"file:{chains.folder}").exit_code == ExitCode.CLEAN, moment
    demand_whole(chains, tieredctl, 3, 4)


@dataclass
class SetsInBucket:
    """The same sets in a bucket, behind a proxy or not."""

    sets: CapturedSets
    bucket: Bucket
    endpoint: str

    def __post_init__(self) -> None:
        for name in self.bucket.names("sets/"):
            self.bucket.remove(name)
        for key, data in own_files(self.sets).items():
            self.bucket.put(f"sets/{key}", data)

    @property
    def place(self) -> list[str]:
        options = dict(self.bucket.options) | {"endpoint": self.endpoint}
        settings = [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]
        return ["--from", f"{self.bucket.scheme}://{BUCKET}/sets", *settings]

    def prune(self, tieredctl: Tieredctl) -> Outcome:
        words = ("--keep-last", "1", "--apply", *self.sets.confirmed, "-o", "json")
        return tieredctl("backup", "prune", *self.place, *words)

    def names(self) -> set[str]:
        return {name for name in self.bucket.names("sets/") if ".tieredctl" not in name}


@pytest.mark.integration
def test_sets_in_buckets_are_pruned_too(
    chains: CapturedSets,
    tieredctl: Tieredctl,
    versitygw: ObjectServer,
    fake_gcs_server: ObjectServer,
    azurite: ObjectServer,
) -> None:
    for bucket, server in (
        (S3Bucket(versitygw.endpoint), versitygw),
        (GcsBucket(fake_gcs_server.endpoint), fake_gcs_server),
        (AzureContainer(azurite.endpoint), azurite),
    ):
        there = SetsInBucket(chains, bucket, bucket.options.get("endpoint", server.endpoint))

        done = there.prune(tieredctl)

        assert (done.exit_code, done.document()["summary"]["done"]) == (ExitCode.CLEAN, 2), done.err
        assert there.names()
        assert all(map(_kept, there.names())), bucket.scheme
        assert tieredctl("backup", "verify", *there.place).exit_code == ExitCode.CLEAN, bucket.scheme


@pytest.mark.integration
def test_in_a_bucket_that_keeps_versions_nothing_is_said_to_be_freed(
    chains: CapturedSets, tieredctl: Tieredctl, moto: ObjectServer
) -> None:
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        bucket.fill(own_files(chains))
        _, url, *settings = bucket.store_words()
        words = ("--from", url, *settings, "-o", "json")

        done = tieredctl("backup", "prune", *words, "--keep-last", "1", "--apply", *chains.confirmed)

        stays = done.document()["summary"]["stays"]
        pruned = [key for key in own_files(chains) if not _kept(key)]
        assert (done.exit_code, stays["versioning"]) == (ExitCode.CLEAN, "enabled"), done.err
        assert stays["bytesKept"] == done.document()["summary"]["bytes"] > 0
        assert bucket.kept(pruned) == (len(pruned), len(pruned))
        assert tieredctl("backup", "verify", *words).exit_code == ExitCode.CLEAN


LIES: dict[str, tuple[Callable[[], Rule], set[int]]] = {
    "deletions that are only said to be done": (lambda: Rule(dropped, "DELETE", "/manifests/"), {ExitCode.FAILURE, 5}),
    "a note that is stored as other bytes": (
        lambda: Rule(stored_altered(one_bit_flipped), "PUT", "/beginnings/"),
        {ExitCode.CORRUPTION, 5},
    ),
}


@pytest.fixture
def lied_about(chains: CapturedSets, moto: ObjectServer) -> Iterator[tuple[SetsInBucket, FaultyProxy]]:
    bucket = S3Bucket(moto.endpoint)
    with FaultyProxy(moto.endpoint) as proxy:
        yield SetsInBucket(chains, bucket, proxy.endpoint), proxy


@pytest.mark.integration
@pytest.mark.parametrize("name", LIES)
def test_a_store_that_lies_loses_no_kept_set(
    name: str, lied_about: tuple[SetsInBucket, FaultyProxy], tieredctl: Tieredctl
) -> None:
    there, proxy = lied_about
    before, (rule_of, codes) = there.names(), LIES[name]
    rule = rule_of()
    proxy.rules.append(rule)

    outcome = there.prune(tieredctl)

    proxy.rules.remove(rule)
    assert rule.met > 0
    assert outcome.exit_code in codes, outcome.err
    assert there.names() >= before


@pytest.mark.integration
@pytest.mark.parametrize("hidden", [f"manifests/0000000{number}" for number in range(1, 5)])
def test_a_listing_that_hides_a_manifest_loses_no_set_that_stays(
    hidden: str, lied_about: tuple[SetsInBucket, FaultyProxy], tieredctl: Tieredctl
) -> None:
    there, proxy = lied_about
    kept = {name for name in there.names() if _kept(name)}
    lie: Lie = left_out(hidden)
    rule = Rule(lie, "GET", "list-type")
    proxy.rules.append(rule)

    there.prune(tieredctl)

    proxy.rules.remove(rule)
    assert rule.met > 0
    assert there.names() >= kept
    if hidden.endswith("4"):
        assert there.prune(tieredctl).exit_code == ExitCode.CLEAN
