"""Records of every type and version, encoded by Kafka's own classes, are the JSON that Kafka's own converters make."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.driven_brokers import jars_of
from tests.rigs.java_program import run_java_program
from tieredctl.formats.kafka_json import json_document
from tieredctl.formats.kraft_log import KraftRecordType, decode_kraft_record, encode_kraft_record
from tieredctl.formats.message_json import message
from tieredctl.formats.wire import read_whole, writer

RELEASES = ["4.3.1", "3.9.1"]
SAMPLES_OF_EACH = 25

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=RELEASES)
def samples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """`value`: a record's bytes; `document`: its JSON; of a control record `control`, the name of its message."""
    file = tmp_path_factory.mktemp("samples") / "samples.jsonl"
    run_java_program(jars_of(request.param), "MetadataRecordSamples", str(file), str(SAMPLES_OF_EACH), "1")
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def test_metadata_records(samples: list[dict[str, Any]]) -> None:
    seen = set()
    for sample in of_the_log(samples):
        record = decode_kraft_record(b64decode(sample["value"]))
        assert record.schema is not None
        assert record.fields is not None
        data = json_document(record.schema, record.fields)
        assert {"type": record.type_name, "version": record.version, "data": data} == sample["document"]
        seen.add(record.api_key)

    assert seen >= set(KraftRecordType) - {KraftRecordType.CLEAR_ELR}  # which 3.9 does not have


def test_control_records(samples: list[dict[str, Any]]) -> None:
    seen = set()
    for sample in samples:
        if "control" not in sample:
            continue
        value = b64decode(sample["value"])
        schema = message(sample["control"]).schema(int.from_bytes(value[:2]))
        assert json_document(schema, read_whole(schema, value)) == sample["document"]
        seen.add((schema.name, value[:2]))

    assert len(seen) == 6


def test_what_is_read_is_written_as_kafka_wrote_it(samples: list[dict[str, Any]]) -> None:
    for sample in samples:
        value = b64decode(sample["value"])
        if "control" in sample:
            schema = message(sample["control"]).schema(int.from_bytes(value[:2]))
            assert writer(schema)(read_whole(schema, value)) == value
        else:
            record = decode_kraft_record(value)
            assert record.fields is not None
            assert encode_kraft_record(record.api_key, record.version, record.fields) == value


def of_the_log(samples: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (sample for sample in samples if "control" not in sample)
