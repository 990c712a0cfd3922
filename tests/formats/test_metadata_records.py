"""Values of `__remote_log_metadata`, byte for byte: Kafka's form, Kafka's form before 3.6, and KIP-405's."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from tests.sample_events import PARTITION, PARTITION_DELETE, SEGMENT, SNAPSHOT, UPDATE
from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_records import decode_event, encode_event, is_kip_405
from tieredctl.model.events import (
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
)

GOLDEN: dict[str, tuple[MetadataEvent, int, str]] = {
    "KIP-405 segment, copy started": (
        replace(SEGMENT, author=7, form=RecordForm.KIP_405),
        110,
        (
            "000000017400112233445566778899aabbccddeeff000000030102030405060708090a0b0c0d0e0f1000000000000000"
            "000000000000000063000000070000018bcfe568000000018bcfe569f400000002000000000000000000000000000000"
            "02000000000000003c0010000000"
        ),
    ),
    "KIP-405 update, copy finished": (
        replace(UPDATE, author=7, form=RecordForm.KIP_405),
        54,
        (
            "010000017400112233445566778899aabbccddeeff000000030102030405060708090a0b0c0d0e0f1000000007000001"
            "8bcfe56b8401"
        ),
    ),
    "KIP-405 partition delete, marked": (
        replace(PARTITION_DELETE, author=7, form=RecordForm.KIP_405),
        38,
        "020000017400112233445566778899aabbccddeeff00000003000000070000018bcfe56be800",
    ),
    "Kafka segment without custom metadata": (
        SEGMENT,
        113,
        (
            "010000027400112233445566778899aabbccddeeff00000003000102030405060708090a0b0c0d0e0f10000000000000"
            "0000000000000000000063000000010000018bcfe568000000018bcfe569f40300000000000000000000000000000000"
            "02000000000000003c0000100000000000"
        ),
    ),
    "Kafka segment with custom metadata and an empty transaction index": (
        replace(SEGMENT, custom_metadata=b"\1\2\3", txn_idx_empty=True),
        119,
        (
            "010000027400112233445566778899aabbccddeeff00000003000102030405060708090a0b0c0d0e0f10000000000000"
            "0000000000000000000063000000010000018bcfe568000000018bcfe569f40300000000000000000000000000000000"
            "02000000000000003c0000100000040102030001000101"
        ),
    ),
    "Kafka 3.0 to 3.5 segment": (
        replace(SEGMENT, form=RecordForm.KAFKA_BEFORE_3_6),
        112,
        (
            "010000027400112233445566778899aabbccddeeff00000003000102030405060708090a0b0c0d0e0f10000000000000"
            "0000000000000000000063000000010000018bcfe568000000018bcfe569f40300000000000000000000000000000000"
            "02000000000000003c00001000000000"
        ),
    ),
    "Kafka update, copy finished": (
        UPDATE,
        58,
        (
            "010100027400112233445566778899aabbccddeeff00000003000102030405060708090a0b0c0d0e0f10000000000100"
            "00018bcfe56b84000100"
        ),
    ),
    "Kafka update with custom metadata": (
        replace(UPDATE, custom_metadata=b"\1\2\3"),
        61,
        (
            "010100027400112233445566778899aabbccddeeff00000003000102030405060708090a0b0c0d0e0f10000000000100"
            "00018bcfe56b84040102030100"
        ),
    ),
    "Kafka partition delete, marked": (
        PARTITION_DELETE,
        40,
        "010200027400112233445566778899aabbccddeeff0000000300000000010000018bcfe56be80000",
    ),
    "Kafka snapshot record": (
        SNAPSHOT,
        95,
        (
            "0103000102030405060708090a0b0c0d0e0f1000000000000000000000000000000063000000010000018bcfe5680000"
            "00018bcfe569f4030000000000000000000000000000000002000000000000003c0000100000040102030001000101"
        ),
    ),
}

BOUNDARY_LENGTHS = [1, 2, 126, 127, 128, 248, 249]
"""Lengths of a topic's name around which the ambiguous prefix `01 00 00` turns."""


@pytest.mark.parametrize(("event", "length", "encoded"), GOLDEN.values(), ids=GOLDEN.keys())
def test_golden_bytes_are_read_and_written(event: MetadataEvent, length: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert len(data) == length
    assert decode_event(data) == event
    assert encode_event(event) == data


def test_a_value_that_is_cut_short_or_goes_on_never_passes_for_the_form_it_had() -> None:
    for name, (event, length, encoded) in GOLDEN.items():
        data = bytes.fromhex(encoded)
        for shorter in range(length):
            # A null CustomMetadata cut off leaves the form before 3.6; a cut at 53 + xx leaves KIP-405's length.
            with suppress(DecodeError):
                assert decode_event(data[:shorter]).form is not event.form, (name, shorter)
        with pytest.raises(DecodeError):
            pytest.fail(f"{name}: {decode_event(data + bytes(2))}")


@pytest.mark.parametrize("length", BOUNDARY_LENGTHS)
def test_the_forms_are_distinguished_for_every_length_of_a_topic_name(length: int) -> None:
    partition = replace(PARTITION, topic="-" * length)
    events: list[RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata] = [
        SEGMENT,
        UPDATE,
        PARTITION_DELETE,
    ]
    for event, form in product(events, RecordForm):
        if isinstance(event, RemotePartitionDeleteMetadata) and form is RecordForm.KAFKA_BEFORE_3_6:
            continue  # 3.6 changed nothing in this record
        written = replace(event, topic_id_partition=partition, form=form)

        data = encode_event(written)

        assert is_kip_405(data) is (form is RecordForm.KIP_405), written
        assert decode_event(data) == written
    for form, count in product(RecordForm, range(1, 200)):
        epochs = tuple((epoch, epoch) for epoch in range(count))
        many = replace(SEGMENT, topic_id_partition=partition, segment_leader_epochs=epochs, form=form)
        assert decode_event(encode_event(many)) == many


@pytest.mark.parametrize("length", BOUNDARY_LENGTHS)
def test_the_two_records_that_share_a_prefix_never_have_one_length(length: int) -> None:
    partition = replace(PARTITION, topic="a" * length)
    shortest = replace(SEGMENT, topic_id_partition=partition, segment_leader_epochs=((0, 0),))

    update = encode_event(replace(UPDATE, topic_id_partition=partition, form=RecordForm.KIP_405))
    segment = encode_event(replace(shortest, form=RecordForm.KAFKA_BEFORE_3_6))

    assert update[:3] == segment[:3] == b"\1\0\0"
    assert len(update) == 53 + length
    assert len(segment) > len(update)


def test_custom_metadata_of_no_bytes_is_not_the_absence_of_it() -> None:
    present = replace(UPDATE, custom_metadata=b"")

    data = encode_event(present)

    assert data == encode_event(UPDATE)[:-3] + b"\1\1\0"
    assert decode_event(data) == present


def test_an_empty_transaction_index_is_a_tagged_field_that_is_absent_while_false() -> None:
    assert encode_event(SEGMENT)[-1:] == b"\0"
    assert encode_event(replace(SEGMENT, txn_idx_empty=True))[-4:] == b"\1\0\1\1"


def test_values_of_neither_form_and_what_no_broker_can_construct_are_refused() -> None:
    update = encode_event(UPDATE)
    refused = {
        "without an end": b"",
        "frame version 3": bytes.fromhex("03000000"),
        "unknown apiKey 4": bytes.fromhex("01040000"),
        "unknown version 1": bytes.fromhex("01000100"),
        "claims -1 bytes": bytes.fromhex("0100000000"),
        "impossible offsets -1 to 99": encode_event(replace(SEGMENT, start_offset=-1)),
        "impossible offsets 0 to -1": encode_event(replace(SEGMENT, end_offset=-1)),
        "no segment leader epochs": encode_event(replace(SEGMENT, segment_leader_epochs=())),
        "RemoteLogSegmentState": update[:-2] + b"\xff" + update[-1:],
        "RemoteLogSegmentState ?": update[:-2] + b"\x04" + update[-1:],
    }
    for reason, value in refused.items():
        with pytest.raises(DecodeError, match=reason):
            pytest.fail(f"{reason}: {decode_event(value)}")
