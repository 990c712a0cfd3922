"""Combined objects in real buckets: uploaded, verified, cleaned, put back and restored as in a folder (KIP-1176, "Using
a traditional cloud storage (e.g. S3) for active log segments")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.metadata_logs import copied, write_events
from tests.rigs.buckets import BUCKET, Bucket, GcsBucket, S3Bucket
from tests.wal.local_partitions import CLUSTER_ID, ORDERS, OTHER, batch, write_partition

SERVERS: Mapping[str, type[Bucket]] = {"moto": S3Bucket, "fake_gcs_server": GcsBucket}


@pytest.fixture
def store_words(server: str, request: pytest.FixtureRequest) -> Sequence[str]:
    """The options that name the bucket as a store."""
    bucket = SERVERS[server](request.getfixturevalue(server).endpoint)
    options = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    return "--store", f"{bucket.scheme}://{BUCKET}/wal-{server}", *options


@pytest.mark.usefixtures("cloud_environment")
@pytest.mark.parametrize("server", SERVERS)
def test_a_bucket_is_as_good_as_a_folder(store_words: Sequence[str], tmp_path: Path, tieredctl: Tieredctl) -> None:
    logs = tmp_path / "logs"
    write_partition(logs, ORDERS[0], [batch(offset) for offset in range(4)])
    write_partition(logs, OTHER, [batch(offset, size=300) for offset in range(3)])
    remote = tmp_path / "metadata"
    write_events(remote, *(event for one in (ORDERS[0], OTHER) for event in copied(1, 0, 3, partition=one)))

    def wal(verb: str, *words: str | Path) -> Outcome:
        outcome = tieredctl("wal", verb, *store_words, *words)
        assert outcome.exit_code == 0, outcome.err
        return outcome

    wal("upload", "--log-dir", logs, "--upload-bytes", "500", "--apply")
    wal("verify", "--level", "full")
    wal("restore", "--to", tmp_path / "restored")
    source = ("--log-dir", remote, "--offline-metadata")
    limits = ("--min-age", "0s", "--allow-young", "--max-percent", "100")
    cleaned = wal("clean", *source, *limits, "--apply", "--yes", "--cluster-id", CLUSTER_ID, "-o", "json")
    summary = cleaned.document()["summary"]
    states = {row["state"] for row in wal("inspect", "-o", "jsonl").lines()}
    restored = tieredctl("orphans", "restore", summary["planId"], *store_words)
    wal("restore", "--to", tmp_path / "again", "--without-events")

    assert (summary["done"], states) == (2, {"DELETE_SEGMENT_FINISHED"})
    assert restored.exit_code == 0, restored.err
    for folder in ("restored", "again"):
        for log in logs.glob("*/*.log"):
            assert (tmp_path / folder / log.relative_to(logs)).read_bytes() == log.read_bytes()
