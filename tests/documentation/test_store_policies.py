"""docs/security.md: what its S3 policies allow is enough for the commands they are for; the first changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, Outcome, Tieredctl, this_process
from tests.cli.command_tree import commands
from tests.cli.crashed_bucket import ROOT, FilledBucket, crashed_contents, planned_cluster, store_words
from tests.cli.crashed_cluster import AT_ONCE, CrashedCluster
from tests.cli.running_exporter import exporter, is_up
from tests.documentation.test_security_page import commands_in
from tests.rigs.availability import rig_unavailable
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import SECRET_KEY, add_user, versitygw_with_users
from tests.rigs.prerequisites import RigMissing
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.integration
PAGE = REPOSITORY / "docs" / "security.md"
OPERATOR = "operator"
LOOKING, REMOVING, ASKING = re.findall(
    r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def named(beginning: str, end: str) -> set[str]:
    """The commands in a stretch of the page."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    return {command.partition(" --")[0] for command in commands_in(text.partition(beginning)[2].partition(end)[0])}


def test_every_command_that_asks_a_store_has_a_policy() -> None:
    looking = named("everything that only looks: ", " The prefix is")
    removing = named("what removes objects or writes them: ", ": ```json")
    asking = {" ".join(words) for words, command in commands() if any("--store" in one.opts for one in command.params)}

    asked_settings = named("a bucket's settings: ", ". Add")
    only_named = {"context show", "context add", "support-bundle"}
    assert asking - looking - removing - asked_settings == only_named


@pytest.fixture(scope="module")
def bucket(cloud_environment: None, captures: Path) -> Iterator[FilledBucket]:
    try:
        server = versitygw_with_users()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with server:
        add_user(server.endpoint, OPERATOR)
        yield FilledBucket(S3Bucket(server.endpoint), crashed_contents(captures))


@pytest.fixture
def tieredctl(tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> Tieredctl:
    """Runs tieredctl as the operator, who may do nothing but what a policy allows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", OPERATOR)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    return tieredctl


def allow(bucket: FilledBucket, policy: str) -> None:
    """Gives the operator a policy of the page, for the bucket of the test."""
    assert isinstance(bucket.bucket, S3Bucket)
    document = json.loads(policy.replace("kafka-tiered/prod/", f"{BUCKET}/{ROOT}").replace("kafka-tiered", BUCKET))
    statements = [one | {"Principal": {"AWS": [OPERATOR]}} for one in document["Statement"]]
    bucket.bucket.client.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(document | {"Statement": statements}))


def test_who_may_look_looks_and_removes_nothing(
    tieredctl: Tieredctl, bucket: FilledBucket, captures: Path, tmp_path: Path
) -> None:
    allow(bucket, LOOKING)
    bucket.fill()
    before = bucket.kept()
    cluster = planned_cluster(tieredctl, captures, bucket, None, tmp_path)

    verified = tieredctl("verify", *cluster.store, "--layout", "aiven", "--log-dir", cluster.log_dir)
    assert "denies access" not in verified.err + verified.out
    assert cluster.scan().exit_code == ExitCode.FINDINGS
    for command in ("remote du", "remote ls", "remote multipart", "orphans quarantine ls"):
        assert tieredctl(*command.split(), *cluster.store).exit_code == ExitCode.CLEAN, command
    places: tuple[str | Path, ...] = (*cluster.store, "--layout", "aiven", "--log-dir", cluster.log_dir)
    assert "denies access" not in "".join(tieredctl("status", *places)[1:])
    read = tieredctl("remote", "read", segment_of(cluster), *places, "--to", tmp_path / "segment.log")
    assert read.exit_code == ExitCode.CLEAN, read.err
    with exporter(*places) as running:
        running.awaited(is_up)
    small = tmp_path / "small"
    small.mkdir()
    (small / "a").write_bytes(b"1")
    assert tieredctl("store", "compare", *cluster.store, "--to", f"file:{small}").exit_code == ExitCode.FINDINGS
    copied = copied_to(bucket, tieredctl, small)
    assert (copied.exit_code, "denies access" in copied.err) == (ExitCode.FAILURE, True)
    applied = cluster.apply()
    assert (applied.exit_code, "denies access" in applied.err) == (ExitCode.FAILURE, True)
    assert bucket.kept() == before


def copied_to(bucket: FilledBucket, tieredctl: Tieredctl, folder: Path) -> Outcome:
    """A copy of a folder into the bucket."""
    to = [word.replace("--store", "--to") for word in store_words(bucket.bucket)]
    return tieredctl("store", "copy", "--store", f"file:{folder}", *to, "--apply", "--yes", "--cluster-id", "any")


def segment_of(cluster: CrashedCluster) -> str:
    """One that the bucket has."""
    listed = this_process("remote", "ls", *cluster.store, "--layout", "aiven", "-o", "jsonl").lines()
    return str(next(one["segmentId"] for one in listed if one.get("segmentId")))


def test_who_may_remove_applies_restores_and_purges(
    tieredctl: Tieredctl, bucket: FilledBucket, captures: Path, tmp_path: Path
) -> None:
    allow(bucket, REMOVING)
    bucket.fill()
    cluster = planned_cluster(tieredctl, captures, bucket, None, tmp_path)

    for outcome in (cluster.apply(), cluster.restore(), cluster.purge(*AT_ONCE)):
        assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    assert not bucket.in_quarantine()
    (tmp_path / "small").mkdir()
    (tmp_path / "small/a").write_bytes(b"1")
    copied = copied_to(bucket, tieredctl, tmp_path / "small")
    assert copied.exit_code == ExitCode.CLEAN, copied.err


LACKED = {"lifecycle", "archive tiers", "replication", "encryption", "requester pays", "public access block"}
"""What versitygw has no question for, whoever asks."""


def test_who_may_ask_for_settings_is_told_all_that_the_server_has(tieredctl: Tieredctl, bucket: FilledBucket) -> None:
    bucket.fill()
    allow(bucket, ASKING)
    allowed = tieredctl("doctor", "store", *store_words(bucket.bucket), "-o", "jsonl")
    allow(bucket, LOOKING)
    refused = tieredctl("doctor", "store", *store_words(bucket.bucket), "-o", "jsonl")

    assert unknown(allowed) == LACKED
    assert unknown(refused) > LACKED
    assert refused.exit_code == ExitCode.INCOMPLETE


def unknown(outcome: Outcome) -> set[str]:
    """The questions without an answer."""
    found = [one for one in outcome.lines() if one["code"] == "store-setting-unknown"]
    return {str(one["evidence"]["question"]) for one in found}
