"""Commands that ask a cluster, on what is left of one that is down."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.faults.cluster import captured
from tests.kraft_snapshots import remove_topic_record, topic_record, write_snapshot
from tests.metadata_logs import write_events
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header


@pytest.fixture
def data(captures: Path) -> Path:
    return captures / "kafka-4.3.1/data"


def test_topics_that_are_tiered(tieredctl: Tieredctl, data: Path) -> None:
    outcome = tieredctl("topic", "list", "--kraft-snapshot", data, "--log-dir", data, "-o", "json")

    rows = {item["topic"]: item for item in outcome.document()["items"]}
    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert {name: row["tiering"] for name, row in rows.items()} == dict.fromkeys(
        ("events7", "orders7", "payments7", "slow7"), "on"
    )
    assert rows["slow7"]["remoteBytes"] == 2028337
    assert {row["localBytes"] for row in rows.values()} == {None}


def test_a_topics_status_has_its_settings_and_what_is_remote(tieredctl: Tieredctl, data: Path) -> None:
    words = ("--kraft-snapshot", data / "__cluster_metadata-0", "--log-dir", data, "-o", "json")
    outcome = tieredctl("topic", "status", "orders7", *words)

    document = outcome.document()
    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert document["summary"]["settings"]["local.retention.ms"] == {"value": "1500", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert document["summary"]["brokersUnable"] is None
    assert sum(item["remoteBytes"] for item in document["items"]) == 43081
    assert {(item["latest"], item["localBytes"], item["notTiered"]) for item in document["items"]} == {
        (None, None, None)
    }


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


@pytest.mark.parametrize("words", [("topic", "list"), ("topic", "status", "slow7"), ("doctor",)], ids=" ".join)
def test_a_segment_of_unknown_size_is_told(
    tieredctl: Tieredctl, captures: Path, data: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    known = captured(captures / "kafka-4.3.1")
    first = next(one for one in known.finished() if one.topic_id_partition.topic == "slow7")
    for folder in data.iterdir():
        if not folder.name.startswith("__remote_log_metadata"):
            (tmp_path / folder.name).symlink_to(folder)
    write_events(tmp_path, *known.with_start_changed(first, segment_size_in_bytes=-1).events)

    outcome = tieredctl(*words, "--kraft-snapshot", data, "--log-dir", tmp_path)

    assert "segment-size-unknown" in outcome.out + outcome.err
    assert outcome.exit_code == ExitCode.INCOMPLETE


def test_without_log_directories_the_doctor_says_so(tieredctl: Tieredctl, data: Path) -> None:
    snapshot = max((data / "__cluster_metadata-0").glob("*.checkpoint"))
    outcome = tieredctl("doctor", "--kraft-snapshot", snapshot, "-o", "json")

    assert outcome.exit_code == ExitCode.INCOMPLETE
    summary = outcome.document()["summary"]
    assert summary["metadataEvents"] is None
    assert "no log directory was given" in json.dumps(summary["notLookedAt"])


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--kraft-snapshot", "{data}", "--bootstrap-server", "localhost:1"),
        ("doctor", "--kraft-snapshot", "{data}", "--store", "memory:"),
        ("doctor", "--kraft-snapshot", "nowhere"),
        ("topic", "list", "--kraft-snapshot", "{data}"),
        ("topic", "list", "--log-dir", "{data}"),
        ("topic", "status", "orders7", "--kraft-snapshot", "{data}", "--log-dir", "{other}"),
        ("topic", "status", "gone7", "--kraft-snapshot", "{data}", "--log-dir", "{data}"),
        ("topic", "status", "t", "--bootstrap-server", "localhost:1", "--log-dir", "{data}"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tieredctl: Tieredctl, captures: Path, data: Path, words: tuple[str, ...]
) -> None:
    other = captures / "kafka-3.9.1/data"

    outcome = tieredctl(*(word.format(data=data, other=other) for word in words))

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "Traceback" not in outcome.err


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


@pytest.mark.parametrize(
    ("topic_id", "path", "code"),
    [
        (ORDERS, "", "still has the topic"),
        (GONE, "__cluster_metadata-0/00000000000000000414-0000000008.checkpoint", "still has the topic"),
    ],
)
def test_what_the_cluster_has_or_had_at_its_last_snapshot_is_not_planned(
    tieredctl: Tieredctl, captures: Path, crashed: tuple[str | Path, ...], topic_id: str, path: str, code: str
) -> None:
    data = captures / "aiven-crash-4.3.1/data"

    outcome = tieredctl("partition", "remove", topic_id, "--kraft-snapshot", data / path, *crashed)

    assert outcome.exit_code != ExitCode.CLEAN
    assert code in outcome.err


def test_nothing_is_removed_while_no_broker_answers(
    tieredctl: Tieredctl, captures: Path, crashed: tuple[str | Path, ...]
) -> None:
    data = captures / "aiven-crash-4.3.1/data"

    outcome = tieredctl("partition", "remove", GONE, "--kraft-snapshot", data, *crashed, "--apply")

    assert outcome.exit_code == ExitCode.USAGE
    assert "give --bootstrap-server" in outcome.err


STRANGE = {
    "kraft-record-unknown": b"\x01\x63\x00\x01",
    "kraft-record-refused": remove_topic_record("AAAAAAAAQAAAAAAAAAAAAQ"),
}
"""A record of a later release, and one that contradicts those before it."""
COMMANDS = {
    "topic list": ("topic", "list", "--log-dir", "{data}"),
    "topic status": ("topic", "status", "orders33", "--log-dir", "{data}"),
    "partition remove": (
        *("partition", "remove", ORDERS, "--even-if-live", "--segment-events-only"),
        *("--log-dir", "{data}", "--store", "{store}", "--layout", "aiven"),
    ),
    "orphans scan": ("orphans", "scan", "--log-dir", "{data}", "--store", "{store}", "--layout", "aiven"),
    "verify": ("verify", "--log-dir", "{data}", "--store", "{store}", "--layout", "aiven", "--level", "listing"),
    "doctor": ("doctor", "--log-dir", "{data}"),
    "snapshot inspect": ("snapshot", "inspect", "{data}", "--cluster"),
    "snapshot compare": ("snapshot", "compare", "{data}", "{data}"),
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


@pytest.mark.parametrize("command", COMMANDS)
def test_what_makes_the_metadata_log_incomplete_is_said_by_every_command(
    tieredctl: Tieredctl, strange: tuple[str, dict[str, str]], command: str
) -> None:
    code, paths = strange
    words = [word.format(**paths) for word in COMMANDS[command]]
    source = () if command.startswith("snapshot") else ("--kraft-snapshot", paths["data"])

    outcome = tieredctl(*words, *source)

    assert code in outcome.out + outcome.err
    assert outcome.exit_code in (ExitCode.INCOMPLETE, ExitCode.CORRUPTION), outcome.err


def test_a_topic_that_an_incomplete_log_lacks_is_unknown(
    tieredctl: Tieredctl, strange: tuple[str, dict[str, str]]
) -> None:
    _, paths = strange
    where = ("--kraft-snapshot", paths["data"], "--log-dir", paths["data"])

    outcome = tieredctl("topic", "status", "nosuch", *where)

    assert (outcome.exit_code, outcome.out) == (ExitCode.INCOMPLETE, "")
    assert "unknown whether there is a topic nosuch" in outcome.err


def test_what_an_incomplete_log_lacks_is_not_planned_as_gone(
    tieredctl: Tieredctl, strange: tuple[str, dict[str, str]]
) -> None:
    _, paths = strange
    where = ("--log-dir", paths["data"], "--store", paths["store"], "--layout", "aiven")

    outcome = tieredctl("partition", "remove", GONE, "--kraft-snapshot", paths["data"], *where)

    assert (outcome.exit_code, outcome.out) == (ExitCode.INCOMPLETE, "")


@pytest.mark.parametrize("command", [("topic", "list"), ("topic", "status", "orders7")])
def test_the_source_has_the_metadata_log_and_its_age(
    tieredctl: Tieredctl, data: Path, command: tuple[str, ...]
) -> None:
    outcome = tieredctl(*command, "--kraft-snapshot", data, "--log-dir", data, "-o", "json")

    source = outcome.document()["source"]
    assert source["kind"] == "log-dir"
    assert source["cluster"]["kind"] == "kraft-snapshot"
    assert (source["cluster"]["snapshotId"], source["cluster"]["endOffset"]) == ("107-2", 123)
    assert source["cluster"]["lastContainedLogTimestamp"] > 1_700_000_000_000


DEFAULTS = {"log.retention.ms": "-1", "log.retention.bytes": "-1", "log.local.retention.bytes": "-2"}
LAGS = {"log.remote.copy.lag.ms": "0", "log.remote.copy.lag.bytes": "0"}
KEPT_TWICE = "topic-config-kept-twice"


def setting(resource_type: int, name: str, setting: str, value: str) -> bytes:
    fields = {"ResourceType": resource_type, "ResourceName": name, "Name": setting, "Value": value}
    return encode_kraft_record(KraftRecordType.CONFIG, 0, fields)


@pytest.mark.parametrize(
    ("default", "own", "is_kept_twice"),
    [
        ({}, {}, False),
        ({"log.local.retention.ms": "60000", "log.retention.ms": "-1"}, {}, False),
        ({**DEFAULTS, **LAGS, "log.local.retention.ms": "60000"}, {}, False),
        ({**DEFAULTS, **LAGS, "log.local.retention.ms": "-2"}, {}, True),
        ({**DEFAULTS, **LAGS, "log.local.retention.ms": "-2"}, {"log.local.retention.ms": "60000"}, False),
    ],
)
def test_a_rule_is_made_by_inherited_settings_only_where_the_metadata_log_decides_them(
    tieredctl: Tieredctl, tmp_path: Path, default: dict[str, str], own: dict[str, str], is_kept_twice: bool
) -> None:
    """Brokers' files may have anything."""
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
    assert (KEPT_TWICE in codes) is is_kept_twice
    assert outcome.exit_code == ExitCode.INCOMPLETE


def test_an_inherited_setting_is_unknown_and_not_kafkas_default(tieredctl: Tieredctl, data: Path) -> None:
    where = ("--kraft-snapshot", data, "--log-dir", data)
    outcome = tieredctl("topic", "status", "orders7", *where, "-o", "json")

    summary = outcome.document()["summary"]
    assert summary["settings"]["remote.copy.lag.ms"] == {"value": None, "source": "UNKNOWN"}
    assert (summary["copyLag"], summary["waitingBytes"]) == (None, None)
