"""`snapshot inspect --cluster`: the cluster as of a snapshot, or of the end of the log after it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import Tieredctl
from tests.kraft_snapshots import topic_record, write_snapshot
from tests.random_metadata_records import encoded
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_log import KraftRecordType
from tieredctl.model.ids import uuid_text

TOPIC_ID = uuid_text(bytes(range(16)))
CREDENTIAL = {"Name": "alice", "Mechanism": 1, "Salt": b"pepper77", "StoredKey": b"hashed77", "ServerKey": b"signed77"}
PASSWORD = {"ResourceType": 4, "ResourceName": "1", "Name": "ssl.key.password", "Value": "hunter2"}


def test_all_that_a_stopped_brokers_folder_says(tieredctl: Tieredctl, data: Path) -> None:
    outcome = tieredctl("snapshot", "inspect", data, "--cluster", "-o", "json")

    document = outcome.document()
    items = {(item["kind"], item["subject"]): item["values"] for item in document["items"]}
    assert outcome.exit_code == ExitCode.CLEAN
    assert document["summary"]["topics"] == sum(kind == "topic" for kind, _ in items)
    assert document["summary"]["fencedBrokers"] == [1]
    assert (document["summary"]["endOffset"], document["summary"]["metadataVersion"]) == (123, 30)
    assert items["topic", "orders7"] == {"topicId": "Ex-aw3fEQIi3do0H9Y7cKQ", "partitions": 3}
    assert items["config", "topic orders7: local.retention.ms"] == {"value": "1500"}
    assert items["partition", "orders7-0"]["replicas"] == [1]
    assert items["broker", "1"]["endPoints"][0]["port"] == 29092


def test_a_snapshot_alone_has_what_was_deleted_since(tieredctl: Tieredctl, data: Path) -> None:
    snapshot = data / "__cluster_metadata-0/00000000000000000085-0000000001.checkpoint"

    outcome = tieredctl("snapshot", "inspect", snapshot, "--cluster", "-o", "jsonl")

    assert "gone7" in {item["subject"] for item in outcome.lines() if item["kind"] == "topic"}


def test_no_format_shows_a_secret(tieredctl: Tieredctl, tmp_path: Path) -> None:
    credential = encoded(KraftRecordType.USER_SCRAM_CREDENTIAL, CREDENTIAL)
    snapshot = write_snapshot(
        tmp_path, 1, topic_record(TOPIC_ID), credential, encoded(KraftRecordType.CONFIG, PASSWORD)
    )
    for output in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        outcome = tieredctl("snapshot", "inspect", snapshot, "--cluster", "-o", output)

        assert outcome.exit_code == ExitCode.CLEAN, output
        assert "alice" in outcome.out
        assert "(hidden)" in outcome.out
        for secret in ("hunter2", "pepper77", "hashed77", b"pepper77".hex(), b"hashed77".hex(), b"signed77".hex()):
            assert secret not in outcome.out, output


def test_what_is_not_one_cluster_is_refused(tieredctl: Tieredctl, data: Path) -> None:
    for words, code in (
        ((data, data), ExitCode.USAGE),
        ((data, "--type", "TOPIC"), ExitCode.USAGE),
        (("nowhere",), ExitCode.USAGE),
        (("/dev/null",), ExitCode.FAILURE),
        ((data / "__cluster_metadata-0/quorum-state",), ExitCode.USAGE),
    ):
        outcome = tieredctl("snapshot", "inspect", *words, "--cluster")

        assert (outcome.exit_code, outcome.out) == (code, ""), words


HIDDEN_SETTINGS = (
    *((4, "1", name) for name in ("my.rest.basic.auth.user.info", "plugin.api.key", "my.url", "mySecret", "PASSWORD")),
    *((4, "", name) for name in ("azure.account.key", "gcs.credentials.json", "listener.name.x.my.url")),
    (4, "1", "listener.name.tls.ssl.keystore.password"),
    (16, "subscription", "my.Token"),
)
SHOWN_SETTINGS = (
    (4, "", "log.local.retention.ms"),
    (4, "1", "listener.name.tls.ssl.keystore.location"),
    (2, "passwords", "retention.ms"),
    (16, "subscription", "metrics"),
)


def setting(resource_type: int, name: str, setting: str, value: str) -> bytes:
    fields = {"ResourceType": resource_type, "ResourceName": name, "Name": setting, "Value": value}
    return encoded(KraftRecordType.CONFIG, fields)


def test_settings_that_may_be_secrets_or_are_not_kafkas_are_hidden_and_no_others(
    tieredctl: Tieredctl, tmp_path: Path
) -> None:
    """Kafka takes broker settings that it does not know for sensitive."""
    names = [*HIDDEN_SETTINGS, *SHOWN_SETTINGS]
    before = write_snapshot(tmp_path / "before", 1, topic_record(TOPIC_ID), *(setting(*one, "old77") for one in names))
    after = write_snapshot(tmp_path / "after", 1, topic_record(TOPIC_ID), *(setting(*one, "new77") for one in names))

    inspected = tieredctl("snapshot", "inspect", before, "--cluster", "-o", "jsonl")
    compared = tieredctl("snapshot", "compare", before, after, "-o", "jsonl")

    shown = [item for item in inspected.lines() if item["kind"] == "config" and item["values"]["value"] == "old77"]
    changed = [item for item in compared.lines() if item["after"] == {"value": "new77"}]
    assert (inspected.out.count("old77"), len(shown)) == (len(SHOWN_SETTINGS), len(SHOWN_SETTINGS))
    assert len(changed) == len(SHOWN_SETTINGS)
    assert len(compared.lines()) == len(names)
    for one in HIDDEN_SETTINGS:
        assert not any(item["subject"].endswith(one[2]) for item in [*shown, *changed])
