"""Commands that ask a cluster, on what is left of one that is down."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.faults.cluster import captured
from tests.kraft_snapshots import remove_topic_record, topic_record, write_snapshot
from tests.metadata_logs import write_events
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header


def demand_the_logs_end(source: dict[str, Any]) -> None:
    """The source has the metadata log and its age."""
    cluster = source["cluster"]
    assert (source["kind"], cluster["kind"]) == ("log-dir", "kraft-snapshot")
    assert (cluster["snapshotId"], cluster["endOffset"]) == ("107-2", 123)
    assert cluster["lastContainedLogTimestamp"] > 1_700_000_000_000


@pytest.mark.parametrize("words", [("topic", "list"), ("topic", "status", "orders7"), ("doctor",)], ids=" ".join)
def test_without_a_cluster_the_hint_names_what_is_left_of_one_too(
    words: tuple[str, ...], tieredctl: Tieredctl, data: Path
) -> None:
    outcome = tieredctl(*words, "--log-dir", data)

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "--bootstrap-server, or --kraft-snapshot" in outcome.err


def test_topics_that_are_tiered(tieredctl: Tieredctl, data: Path) -> None:
    outcome = tieredctl("topic", "list", "--kraft-snapshot", data, "--log-dir", data, "-o", "json")

    rows = {item["topic"]: item for item in outcome.document()["items"]}
    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert {name: row["tiering"] for name, row in rows.items()} == dict.fromkeys(
        ("events7", "orders7", "payments7", "slow7"), "on"
    )
    assert rows["slow7"]["remoteBytes"] == 2028337
    assert {row["localBytes"] for row in rows.values()} == {None}
    demand_the_logs_end(outcome.document()["source"])


def test_a_topics_status_has_its_settings_and_what_is_remote(tieredctl: Tieredctl, data: Path) -> None:
    """An inherited setting is unknown, and not Kafka's default."""
    words = ("--kraft-snapshot", data / "__cluster_metadata-0", "--log-dir", data, "-o", "json")
    outcome = tieredctl("topic", "status", "orders7", *words)

    document = outcome.document()
    summary, settings = document["summary"], document["summary"]["settings"]
    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert settings["local.retention.ms"] == {"value": "1500", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert settings["remote.copy.lag.ms"] == {"value": None, "source": "UNKNOWN"}
    assert (summary["brokersUnable"], summary["copyLag"], summary["waitingBytes"]) == (None, None, None)
    assert sum(item["remoteBytes"] for item in document["items"]) == 43081
    assert {(item["latest"], item["localBytes"], item["notTiered"]) for item in document["items"]} == {
        (None, None, None)
    }
    demand_the_logs_end(document["source"])


def test_the_doctor_checks_what_it_can_and_says_what_it_cannot(tieredctl: Tieredctl, data: Path) -> None:
    outcome = tieredctl("doctor", "--kraft-snapshot", data, "--log-dir", data, "-o", "json")

    document = outcome.document()
    codes = {item["code"] for item in document["items"]}
    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert {"topic-config-small-segments", "topic-config-metadata-replication", "check-not-made"} <= codes
    summary = document["summary"]
    assert (summary["release"], summary["topics"]) == ("4.3", 4)
    assert summary["metadataEvents"] > 600
    assert (summary["partitions"], summary["remoteSegments"], summary["groupOffsets"]) == (None, None, None)
    not_looked_at = json.dumps(summary["notLookedAt"])
    for what in ("broker settings", "offsets of topics", "consumer groups"):
        assert what in not_looked_at


def test_a_segment_of_unknown_size_is_told(tieredctl: Tieredctl, captures: Path, data: Path, tmp_path: Path) -> None:
    known = captured(captures / "kafka-4.3.1")
    first = next(one for one in known.finished() if one.topic_id_partition.topic == "slow7")
    for folder in data.iterdir():
        if not folder.name.startswith("__remote_log_metadata"):
            (tmp_path / folder.name).symlink_to(folder)
    write_events(tmp_path, *known.with_start_changed(first, segment_size_in_bytes=-1).events)

    for words in (("topic", "list"), ("topic", "status", "slow7"), ("doctor",)):
        outcome = tieredctl(*words, "--kraft-snapshot", data, "--log-dir", tmp_path)

        assert "segment-size-unknown" in outcome.out + outcome.err, words
        assert outcome.exit_code == ExitCode.INCOMPLETE, words


def test_without_log_directories_the_doctor_says_so(tieredctl: Tieredctl, data: Path) -> None:
    snapshot = max((data / "__cluster_metadata-0").glob("*.checkpoint"))
    outcome = tieredctl("doctor", "--kraft-snapshot", snapshot, "-o", "json")

    assert outcome.exit_code == ExitCode.INCOMPLETE
    summary = outcome.document()["summary"]
    assert summary["metadataEvents"] is None
    assert "no log directory was given" in json.dumps(summary["notLookedAt"])


def test_what_does_not_go_together_is_refused(tieredctl: Tieredctl, captures: Path, data: Path) -> None:
    snapshot, log_dir = ("--kraft-snapshot", data), ("--log-dir", data)
    for words in (
        ("doctor", *snapshot, "--bootstrap-server", "localhost:1"),
        ("doctor", *snapshot, "--store", "memory:"),
        ("doctor", "--kraft-snapshot", "nowhere"),
        ("topic", "list", *snapshot),
        ("topic", "list", *log_dir),
        ("topic", "status", "orders7", *snapshot, "--log-dir", captures / "kafka-3.9.1/data"),
        ("topic", "status", "gone7", *snapshot, *log_dir),
        ("topic", "status", "t", "--bootstrap-server", "localhost:1", *log_dir),
    ):
        outcome = tieredctl(*words)

        assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), words


GONE, ORDERS = "LWyDhYizTUK0q-VfQmSubw", "G4i52LJdRBel-FDnehx_Kw"


@pytest.fixture
def crashed(captures: Path) -> tuple[str | Path, ...]:
    """The options for a cluster that deleted GONE after its last snapshot, and was killed."""
    crash = captures / "aiven-crash-4.3.1"
    return ("--log-dir", crash / "data", "--store", f"file:{crash / 'bucket'}", "--layout", "aiven")


def test_what_a_deleted_topic_left_is_planned_by_the_log_after_the_snapshot(
    tieredctl: Tieredctl, captures: Path, crashed: tuple[str | Path, ...]
) -> None:
    data = captures / "aiven-crash-4.3.1/data"

    outcome = tieredctl("partition", "remove", GONE, "--kraft-snapshot", data, *crashed, "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    assert (summary["segments"], summary["objects"], summary["applied"]) == (67, 160, False)


def test_what_the_cluster_has_or_had_at_its_last_snapshot_is_not_planned_and_nothing_is_removed_without_a_broker(
    tieredctl: Tieredctl, captures: Path, crashed: tuple[str | Path, ...]
) -> None:
    data = captures / "aiven-crash-4.3.1/data"
    last_snapshot = data / "__cluster_metadata-0/00000000000000000414-0000000008.checkpoint"
    for topic_id, path, words, code in (
        (ORDERS, data, (), "still has the topic"),
        (GONE, last_snapshot, (), "still has the topic"),
        (GONE, data, ("--apply",), "give --bootstrap-server"),
    ):
        outcome = tieredctl("partition", "remove", topic_id, "--kraft-snapshot", path, *crashed, *words)

        assert outcome.exit_code != ExitCode.CLEAN, (topic_id, words)
        assert code in outcome.err


STRANGE = {
    "kraft-record-unknown": b"\x01\x63\x00\x01",
    "kraft-record-refused": remove_topic_record("AAAAAAAAQAAAAAAAAAAAAQ"),
}
"""A record of a later release, and one that contradicts those before it."""
LOG_DIR = ("--log-dir", "{data}")
STORE = ("--store", "{store}", "--layout", "aiven")
COMMANDS = {
    "topic list": LOG_DIR,
    "topic status": ("orders33", *LOG_DIR),
    "partition remove": (ORDERS, "--even-if-live", "--segment-events-only", *LOG_DIR, *STORE),
    "orphans scan": (*LOG_DIR, *STORE),
    "verify": (*LOG_DIR, *STORE, "--level", "listing"),
    "doctor": LOG_DIR,
    "snapshot inspect": ("{data}", "--cluster"),
    "snapshot compare": ("{data}", "{data}"),
}


@pytest.fixture(params=STRANGE)
def strange(request: pytest.FixtureRequest, captures: Path, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A finding's code, and the paths of a cluster whose metadata log ends with what makes it."""
    crash = captures / "aiven-crash-4.3.1"
    data = shutil.copytree(crash / "data", tmp_path / "data")
    (log,) = (data / "__cluster_metadata-0").glob("*.log")
    content, position = log.read_bytes(), 0
    while position < len(content):
        last = read_batch_header(content, position, len(content))
        position += last.size
    record = Record(last.last_offset + 1, last.max_timestamp, None, STRANGE[request.param])
    log.write_bytes(content + encode_batch([record], partition_leader_epoch=last.partition_leader_epoch))
    return request.param, {"data": str(data), "store": f"file:{crash / 'bucket'}"}


def test_what_makes_the_metadata_log_incomplete_is_said_by_every_command(
    tieredctl: Tieredctl, strange: tuple[str, dict[str, str]]
) -> None:
    """A topic that such a log lacks is unknown, and not planned as gone."""
    code, paths = strange
    snapshot = ("--kraft-snapshot", paths["data"])
    for command, words in COMMANDS.items():
        source = () if command.startswith("snapshot") else snapshot

        outcome = tieredctl(*command.split(), *(word.format(**paths) for word in words), *source)

        assert code in outcome.out + outcome.err, command
        assert outcome.exit_code in (ExitCode.INCOMPLETE, ExitCode.CORRUPTION), (command, outcome.err)
    for command, words in {"topic status": ("nosuch", *LOG_DIR), "partition remove": (GONE, *LOG_DIR, *STORE)}.items():
        outcome = tieredctl(*command.split(), *(word.format(**paths) for word in words), *snapshot)

        assert (outcome.exit_code, outcome.out) == (ExitCode.INCOMPLETE, ""), command


DEFAULTS = {"log.retention.ms": "-1", "log.retention.bytes": "-1", "log.local.retention.bytes": "-2"}
LAGS = {"log.remote.copy.lag.ms": "0", "log.remote.copy.lag.bytes": "0"}
KEPT_TWICE = "topic-config-kept-twice"


def setting(resource_type: int, name: str, setting: str, value: str) -> bytes:
    fields = {"ResourceType": resource_type, "ResourceName": name, "Name": setting, "Value": value}
    return encode_kraft_record(KraftRecordType.CONFIG, 0, fields)


def test_a_rule_is_made_by_inherited_settings_only_where_the_metadata_log_decides_them(
    tieredctl: Tieredctl, tmp_path: Path
) -> None:
    """Brokers' files may have anything."""
    minute, derived = ({"log.local.retention.ms": value} for value in ("60000", "-2"))
    for default, own, is_kept_twice in (
        ({}, {}, False),
        ({**minute, "log.retention.ms": "-1"}, {}, False),
        ({**DEFAULTS, **LAGS, **minute}, {}, False),
        ({**DEFAULTS, **LAGS, **derived}, {}, True),
        ({**DEFAULTS, **LAGS, **derived}, minute, False),
    ):
        snapshot = write_snapshot(
            tmp_path,
            1_700_000_000_000,
            topic_record(GONE, "orders"),
            setting(2, "orders", "remote.storage.enable", "true"),
            *(setting(4, "", *one) for one in default.items()),
            *(setting(4, "1", *one) for one in own.items()),
        )

        outcome = tieredctl("doctor", "--kraft-snapshot", snapshot, "-o", "json")

        codes = {item["code"] for item in outcome.document()["items"]}
        assert (KEPT_TWICE in codes) is is_kept_twice, (default, own)
        assert outcome.exit_code == ExitCode.INCOMPLETE


TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
LIVE = ("--bootstrap-server", "localhost:1")


def test_it_takes_a_live_cluster_a_store_and_a_partition_of_a_topic_id(tieredctl: Tieredctl, tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path}", "--layout", "local")
    for words in (
        (TOPIC_ID, *store),
        (TOPIC_ID, *LIVE),
        *((f"{TOPIC_ID}:{wrong}", *LIVE, *store) for wrong in ("", "x", "-1", "2147483648")),
        ("orders", *LIVE, *store),
    ):
        outcome = tieredctl("partition", "remove", *words)

        assert (outcome.exit_code, outcome.out) == (2, ""), words
