"""`backup run` on a real cluster: what a user may not read is named, and secrets stay where they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType

from tests.cli.command_line import Tieredctl
from tests.rigs.access_rules import Rule, allowed
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.killed_runs import killed_runs
from tests.rigs.stopped_process import KILL, Moment, run_until
from tieredctl.errors import ExitCode

METADATA = [
    Rule(ResourceType.TOPIC, "__remote_log_metadata", one) for one in (AclOperation.READ, AclOperation.DESCRIBE)
]


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    (tmp_path / "bucket").mkdir()
    return tmp_path / "bucket"


def test_everything_is_read_and_no_secret(driven: DrivenBroker, bucket: Path, tieredctl: Tieredctl) -> None:
    code, _, told = tieredctl(
        "backup", "run", "--bootstrap-server", driven.broker.bootstrap_server, "--to", f"file:{bucket}"
    )

    assert code == ExitCode.CLEAN, told
    secure = driven.broker.secure_listeners
    assert f"the password of {secure.username}, SCRAM-SHA-512" in told
    for file in (path for path in bucket.rglob("*") if path.is_file()):
        assert secure.password.encode() not in file.read_bytes(), file
        assert file.name == "cluster.json" or b"USER_SCRAM" not in file.read_bytes(), file
    assert tieredctl("backup", "verify", "--from", f"file:{bucket}").exit_code == ExitCode.CLEAN


def test_what_the_user_may_not_read_is_named_and_the_rest_is_there(
    driven: DrivenBroker, bucket: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    broker, plain = driven.broker, tmp_path / "controllers.properties"
    plain.write_text("security.protocol=PLAINTEXT\n")
    controllers = ("--bootstrap-controller", broker.controller_address, "--controller-config", plain)
    places = ("--bootstrap-server", broker.secure_listeners.sasl_ssl, *controllers, "--to", f"file:{bucket}")
    with allowed(broker, tmp_path, METADATA) as config:
        server, sign_in = broker.secure_listeners.sasl_ssl, ("--command-config", config)
        refused = tieredctl("backup", "run", "--bootstrap-server", server, *sign_in, "--to", f"file:{bucket}")
        assert (refused.exit_code, [*bucket.iterdir()]) == (ExitCode.FAILURE, []), refused.err
        done = tieredctl("backup", "run", *places, "--command-config", config, "-o", "json")

    status = tieredctl("backup", "status", "--from", f"file:{bucket}", "-o", "json").document()
    assert done.exit_code == ExitCode.INCOMPLETE, done.err
    files = {one["file"] for one in done.document()["items"]}
    assert files == {"cluster.checkpoint", "cluster.json", "remote-log-metadata.parquet", "offsets.json"}
    assert status["items"][0]["unread"] == done.document()["summary"]["unread"] > 3


def test_killed_at_any_moment_there_is_a_whole_set_or_none_and_the_next_run_makes_the_same(
    kafka_4: DrivenBroker, bucket: Path, tieredctl: Tieredctl
) -> None:
    broker = kafka_4.broker
    words = ("backup", "run", "--full", "--bootstrap-server", broker.bootstrap_server, "--to", f"file:{bucket}")
    place = ("--from", f"file:{bucket}")

    def begin() -> None:
        shutil.rmtree(bucket)
        bucket.mkdir()

    def newest() -> dict[str, str]:
        """The files of the newest set, with their checksums; all sets are whole."""
        assert tieredctl("backup", "verify", *place).exit_code == ExitCode.CLEAN
        *_, manifest = sorted(bucket.glob("*/manifests/*.json"))
        return {one["name"]: one["sha256"] for one in json.loads(manifest.read_text())["files"]}

    for moment in killed_runs(words, bucket, begin, newest, [broker.remote_dir]):
        verified = tieredctl("backup", "verify", *place)
        assert verified.exit_code in (ExitCode.USAGE, ExitCode.CLEAN), moment  # no set, or a whole one


def test_what_killed_runs_left_is_pruned_with_the_sets_before(
    kafka_4: DrivenBroker, bucket: Path, tieredctl: Tieredctl
) -> None:
    words = ("backup", "run", "--bootstrap-server", kafka_4.broker.bootstrap_server, "--to", f"file:{bucket}")
    place = ("--from", f"file:{bucket}")
    for change in ("link .*/sets/.*", "link .*/manifests/"):
        assert run_until(Moment(change), KILL, bucket, words).exit_code == -KILL

    done = tieredctl(*words, "--full", "-o", "json")

    assert done.exit_code == ExitCode.CLEAN, done.err
    confirmed = ("--apply", "--yes", "--cluster-id", kafka_4.broker.cluster_id)
    pruned = tieredctl("backup", "prune", *place, "--keep-last", "1", *confirmed)
    assert (pruned.exit_code, tieredctl("backup", "verify", *place).exit_code) == (ExitCode.CLEAN, ExitCode.CLEAN)
    assert {path.parent.name[:8] for path in bucket.rglob("sets/*/*")} == {f"{done.document()['summary']['set']:08}"}
