"""Kafka's message definitions in its jars, and the copies of them that tieredctl carries (`make kafka-messages`)."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from tieredctl.formats import message_json

from .maven import KafkaJars, kafka_jars

RELEASE = "4.3.1"
"""Its files describe every version that earlier releases wrote; test_kafka_messages.py holds that for 3.9.1."""
COPIES = Path(message_json.__file__).with_name(message_json.MESSAGES)
_METADATA_RECORDS = "common/metadata/"
_MESSAGES = "common/message/"
_OTHERS = {
    "kafka-clients": (
        "FetchSnapshotRequest",
        "FetchSnapshotResponse",
        "KRaftVersionRecord",
        "LeaderChangeMessage",
        "SnapshotFooterRecord",
        "SnapshotHeaderRecord",
        "VotersRecord",
    ),
    "kafka-raft": ("QuorumStateData",),
}
"""What is copied besides the metadata records, by the jar that has it."""
_NOTICE = "NOTICE"


def definitions(jars: KafkaJars) -> dict[str, bytes]:
    """By file name, what a release's jars have of the definitions that tieredctl needs, and Kafka's notice."""
    found = {}
    with ZipFile(jars.folder / f"kafka-metadata-{jars.version}.jar") as jar:
        for name in jar.namelist():
            if name.startswith(_METADATA_RECORDS) and name.endswith(".json"):
                found[name.removeprefix(_METADATA_RECORDS)] = jar.read(name)
        found[_NOTICE] = jar.read(_NOTICE)
    for artifact, messages in _OTHERS.items():
        with ZipFile(jars.folder / f"{artifact}-{jars.version}.jar") as jar:
            found |= {f"{name}.json": jar.read(f"{_MESSAGES}{name}.json") for name in messages}
    return found


def copy_definitions() -> None:
    """Replace the copies by what the release's jars have."""
    for copy in COPIES.iterdir():
        copy.unlink()
    for name, content in definitions(kafka_jars(RELEASE)).items():
        COPIES.joinpath(name).write_bytes(content)


if __name__ == "__main__":
    copy_definitions()
