"""A removal that something stops half way: nothing is lost, what was done is said, and another run finishes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import ROOT, UNFINISHED, FilledBucket, crashed_contents, planned_cluster
from tests.cli.crashed_cluster import CrashedCluster, planned_keys
from tests.rigs.buckets import AzureContainer, S3Bucket
from tests.rigs.faulty_proxy import Answer, Fault, FaultyProxy, Request, Trouble
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer
from tieredctl.ops.guards.own_objects import LEASE_KEY, QUARANTINE
from tieredctl.storage.trial import TRIAL_FOLDER

EVERY_TIME = 10_000
DENIED = Answer(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")


def is_copy(request: Request) -> bool:
    return request.method == "PUT" and QUARANTINE in request.path


def is_deletion(request: Request) -> bool:
    deletes = request.method == "DELETE" or "?delete" in request.path or "comp=batch" in request.path
    return deletes and TRIAL_FOLDER not in request.path and TRIAL_FOLDER.encode() not in request.body


@pytest.fixture(scope="module", params=["versitygw", pytest.param("azurite", marks=pytest.mark.exhaustive)])
def server(request: pytest.FixtureRequest) -> ObjectServer:
    running: ObjectServer = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="module")
def bucket(server: ObjectServer, captures: Path) -> FilledBucket:
    kind = AzureContainer if AZURE_ACCOUNT in server.endpoint else S3Bucket
    filled = FilledBucket(kind(server.endpoint), crashed_contents(captures))
    filled.empty()  # of what other modules left there
    return filled


@pytest.fixture
def proxy(bucket: FilledBucket, server: ObjectServer) -> Iterator[FaultyProxy]:
    bucket.fill()
    with FaultyProxy(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def planned(
    tieredctl: Tieredctl, captures: Path, bucket: FilledBucket, server: ObjectServer, proxy: FaultyProxy, tmp_path: Path
) -> CrashedCluster:
    return planned_cluster(tieredctl, captures, bucket, proxy.endpoint + urlsplit(server.endpoint).path, tmp_path)


def apply_through(
    planned: CrashedCluster, proxy: FaultyProxy, applies: Callable[[Request], bool], *faults: Fault
) -> Outcome:
    """One run that meets these faults, and no more of them afterwards."""
    proxy.applies = applies
    proxy.faults[:] = faults
    outcome = planned.apply("-o", "json")
    proxy.faults.clear()
    return outcome


@pytest.mark.parametrize("denied", [is_copy, is_deletion])
def test_who_may_not_copy_or_delete_removes_nothing_and_a_run_that_may_finishes_the_work(
    planned: CrashedCluster, proxy: FaultyProxy, bucket: FilledBucket, denied: Callable[[Request], bool]
) -> None:
    outcome = apply_through(planned, proxy, denied, *[DENIED] * EVERY_TIME)
    kept = set(bucket.keys())

    again = planned.apply("-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert "store-forbidden" in outcome.err + outcome.out
    assert planned_keys(planned.plan_file) <= kept
    assert (again.exit_code, again.document()["summary"]["done"]) == (0, UNFINISHED)
    assert not planned_keys(planned.plan_file) & set(bucket.keys())


def test_a_store_that_stops_answering_is_gone_on_with_later(
    planned: CrashedCluster, proxy: FaultyProxy, bucket: FilledBucket, asked_once: None
) -> None:
    stopped = apply_through(planned, proxy, is_copy, *[Trouble.NOT_DELIVERED] * EVERY_TIME)
    kept = planned_keys(planned.plan_file) & set(bucket.keys())

    resumed = planned.apply("-o", "json")

    assert (stopped.exit_code, stopped.document()["summary"]["stopped"]) == (1, "store-unreachable")
    assert kept == planned_keys(planned.plan_file)
    assert (resumed.exit_code, resumed.document()["summary"]["done"]) == (0, UNFINISHED)


def test_a_run_that_lost_its_lease_deletes_nothing(
    planned: CrashedCluster, proxy: FaultyProxy, bucket: FilledBucket
) -> None:
    def take_over(request: Request) -> bool:
        if is_copy(request):
            bucket.bucket.put(ROOT + LEASE_KEY, b'{"holder": "another run", "expiresMs": 0}')
        return False

    outcome = apply_through(planned, proxy, take_over, DENIED)

    assert outcome.exit_code == 11
    assert planned_keys(planned.plan_file) <= set(bucket.keys())


def test_answers_that_are_lost_change_nothing_about_the_outcome(
    planned: CrashedCluster, proxy: FaultyProxy, bucket: FilledBucket
) -> None:
    def writes(request: Request) -> bool:
        return is_copy(request) or is_deletion(request)

    outcome = apply_through(planned, proxy, writes, *[Trouble.ANSWER_LOST] * 3)

    assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (0, UNFINISHED)
    assert not planned_keys(planned.plan_file) & set(bucket.keys())
