"""The same answers on real object servers as on a folder; and a control plane that dies meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import TWO_PARTITIONS
from tests.rigs.buckets import BUCKET, Bucket, GcsBucket, S3Bucket
from tests.rigs.inkless import Inkless
from tests.rigs.object_servers import SECRET_KEY

SERVERS: dict[str, type[Bucket]] = {"versitygw": S3Bucket, "fake_gcs_server": GcsBucket}
_prefixes = count()


@dataclass(frozen=True)
class InBucket:
    """The captured objects in a bucket of their own prefix, beside the captured control plane."""

    inkless: Inkless
    bucket: Bucket
    prefix: str

    @property
    def places(self) -> tuple[str, ...]:
        settings = [
            word for name, value in self.bucket.options.items() for word in ("--store-option", f"{name}={value}")
        ]
        return (*self.inkless.control_plane, "--store", f"{self.bucket.scheme}://{BUCKET}/{self.prefix}", *settings)


@pytest.fixture(params=SERVERS)
def in_bucket(request: pytest.FixtureRequest, inkless: Inkless) -> InBucket:
    """On each kind of server. What was uploaded is as old as the test."""
    bucket = SERVERS[request.param](request.getfixturevalue(request.param).endpoint)
    prefix = f"diskless{next(_prefixes)}"
    for key, data in inkless.capture.objects().items():
        bucket.put(f"{prefix}/{key}", data)
    return InBucket(inkless, bucket, prefix)


@pytest.mark.parametrize("level", ["listing", "headers", "full"])
def test_a_bucket_is_verified(in_bucket: InBucket, tieredctl: Tieredctl, level: str) -> None:
    outcome = tieredctl("diskless", "verify", "--level", level, *in_bucket.places, "-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])
    assert (summary["objects"], summary["batches"]) == (12, {"listing": 0, "headers": 19, "full": 50}[level])
    assert SECRET_KEY not in outcome.out + outcome.err


def test_a_lost_and_a_damaged_object_are_found_in_a_bucket(in_bucket: InBucket, tieredctl: Tieredctl) -> None:
    lost = in_bucket.inkless.capture.document["roles"]["latest_shared_file"]
    in_bucket.bucket.remove(f"{in_bucket.prefix}/{lost}")
    data = bytearray(in_bucket.inkless.capture.objects()[TWO_PARTITIONS])
    data[900] ^= 1
    in_bucket.bucket.put(f"{in_bucket.prefix}/{TWO_PARTITIONS}", bytes(data))

    outcome = tieredctl("diskless", "verify", "--level", "full", *in_bucket.places, "-o", "json")

    found = {item["evidence"]["key"]: item["code"] for item in outcome.document()["items"]}
    assert (outcome.exit_code, found) == (4, {lost: "object-missing", TWO_PARTITIONS: "batch-corrupt"}), outcome.out


def test_young_objects_of_a_bucket_are_in_progress(in_bucket: InBucket, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *in_bucket.places, "-o", "json")

    assert outcome.exit_code == 0
    assert outcome.document()["summary"]["status"]["in-progress"]["objects"] == 4


def test_an_object_of_a_bucket_is_inspected_and_explained(in_bucket: InBucket, tieredctl: Tieredctl) -> None:
    inspected = tieredctl("diskless", "inspect", TWO_PARTITIONS, *in_bucket.places, "-o", "jsonl")
    explained = tieredctl("diskless", "explain", "orders:0@45", *in_bucket.places, "-o", "jsonl")

    assert [item["position"] for item in inspected.lines()] == [0, 480, 790]
    assert explained.lines()[0]["recordBatch"] == {"position": 790, "size": 512}


def test_what_brokers_left_in_a_bucket_is_removed_and_put_back(
    in_bucket: InBucket, tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was uploaded just now: the last commit is taken to be later, and commits to come at once."""
    inkless, plan = in_bucket.inkless, tmp_path / "plan"
    monkeypatch.setattr("tieredctl_inkless.ops.diskless.judgement.COMMITTED_WITHIN_MS", 0)
    inkless.run("UPDATE files SET committed_at = now() + interval '4 minutes' WHERE file_id = 15")
    young = ("--min-age", "0s", "--allow-young", "--max-percent", "50")
    places = in_bucket.places
    cluster = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")

    planned = tieredctl("diskless", "orphans", "plan", "--to", plan, *young, *cluster, *places, "-o", "json")
    applied = tieredctl(
        *("diskless", "orphans", "apply", plan, "--receipts", "store", "--yes", *cluster, *places[:2], *places[4:]),
        *("-o", "json"),
    )
    verified = tieredctl("diskless", "verify", *places)
    plan_id = planned.document()["summary"]["planId"]
    restored = tieredctl("diskless", "orphans", "restore", plan_id, *places[2:], "-o", "json")

    assert (planned.exit_code, applied.exit_code, verified.exit_code, restored.exit_code) == (0, 0, 0, 0), applied.err
    assert applied.document()["summary"]["done"] == restored.document()["summary"]["done"] == 4
    left = tieredctl("diskless", "orphans", "scan", "--min-age", "0s", *places, "-o", "json").document()["summary"]
    assert left["objects"] == 16
    assert SECRET_KEY not in plan.read_text() + applied.out + applied.err


@pytest.fixture
def kill_database(inkless: Inkless) -> Iterator[Callable[[], None]]:
    """Kills the server without letting it finish anything; it is started again in the end."""
    yield lambda: inkless.server.stop(signal.SIGQUIT)
    inkless.server.start()


DYING = ("before it is read", "after it was read")


@pytest.mark.parametrize("when", DYING)
@pytest.mark.parametrize("command", [("verify", "--level", "full"), ("orphans", "scan", "--min-age", "1h")])
def test_a_database_that_dies_meanwhile_makes_nothing_lost_and_nothing_orphaned(
    inkless: Inkless,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    kill_database: Callable[[], None],
    command: tuple[str, ...],
    when: str,
) -> None:
    (inkless.bucket / TWO_PARTITIONS).unlink()
    tables = PostgresControlPlane.tables

    def dying(self: PostgresControlPlane) -> ControlPlaneTables:
        if when == DYING[0]:
            kill_database()
        found = tables(self)
        kill_database()
        return found

    monkeypatch.setattr(PostgresControlPlane, "tables", dying)

    outcome = tieredctl("diskless", *command, *inkless.places, "-o", "jsonl")

    assert outcome.exit_code in (1, 5)
    assert "object-missing" not in outcome.out + outcome.err
    assert '"orphan"' not in outcome.out
    assert "Traceback" not in outcome.err


def test_a_database_that_was_restarted_answers_again(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question has its own connection."""
    asked = PostgresControlPlane.states_of

    def restarted(self: PostgresControlPlane, keys: Any) -> Any:
        inkless.server.stop(signal.SIGQUIT)
        inkless.server.start()
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", restarted)
    (inkless.bucket / TWO_PARTITIONS).unlink()

    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "24h", *inkless.places)

    assert outcome.exit_code == 4
    assert "object-missing" in outcome.err
