"""Requests to a diskless coordinator and its answers (KIP-1164, Diskless coordinator API)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import for_code
from tieredctl_proposals.formats.diskless_records import MESSAGES
from tieredctl_proposals.formats.diskless_requests import REQUESTS, decode_diskless_message, encode_diskless_message
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    LATEST_TIERED,
    BatchesResult,
    BatchQuery,
    BatchResult,
    CommitBatch,
    CommitFile,
    CommittedFile,
    CreatablePartitions,
    CreatedPartitions,
    CreatePartitions,
    DeletableRecords,
    DeletedRecords,
    DeletedTopics,
    DeleteRecords,
    DeleteTopics,
    DescribedFiles,
    DescribeFiles,
    DisklessRequest,
    DisklessResponse,
    FileResult,
    FindBatches,
    FoundBatch,
    FoundBatches,
    KafkaError,
    ListedOffsets,
    ListOffsets,
    OffsetQuery,
    OffsetResult,
    RecordsResult,
    TopicResult,
)

from tests.diskless_records import TOPIC_ID
from tieredctl.errors import DecodeError
from tieredctl.formats.message_json import message
from tieredctl.formats.wire import read_whole

PACKAGE = "tieredctl_proposals.formats"

OTHER = "A" * 22
NOT = KafkaError.NOT_COORDINATOR
BATCH = CommitBatch(TOPIC_ID, 3, 0, 84, 0, 1, 1700000000005, 0, 5, 0, 7, 8)
FILE = CommitFile("obj1", 84, (4, 2), (BATCH,))
EXAMPLES: dict[str, DisklessRequest | DisklessResponse] = {
    "CreatePartitionsRequest": CreatePartitions((CreatablePartitions(TOPIC_ID, "t", 4),)),
    "CreatePartitionsResponse": CreatedPartitions((TopicResult(TOPIC_ID), TopicResult(OTHER, NOT, "not here")), 9),
    "DeleteTopicsRequest": DeleteTopics((TOPIC_ID, OTHER), 5),
    "DeleteTopicsResponse": DeletedTopics((TopicResult(TOPIC_ID, KafkaError.UNKNOWN_TOPIC_ID),)),
    "CommitFileRequest": FILE,
    "CommitFileResponse": CommittedFile((BatchResult(KafkaError.NONE, None, 100, 7, 60, True), BatchResult(NOT))),
    "DeleteRecordsRequest": DeleteRecords((DeletableRecords(TOPIC_ID, 3, 60), DeletableRecords(TOPIC_ID, 1, LATEST))),
    "DeleteRecordsResponse": DeletedRecords((RecordsResult(TOPIC_ID, 3, 60), RecordsResult(OTHER, 1, -1, NOT, "no"))),
    "ListOffsetsRequest": ListOffsets((OffsetQuery(TOPIC_ID, 3, LATEST_TIERED), OffsetQuery(OTHER, 3, 17))),
    "ListOffsetsResponse": ListedOffsets((OffsetResult(TOPIC_ID, 3, KafkaError.NONE, None, 7, 60),)),
    "FindBatchesRequest": FindBatches(1 << 20, 10, (BatchQuery(TOPIC_ID, 3, 60, 1 << 10),)),
    "FindBatchesResponse": FoundBatches(
        (
            BatchesResult(TOPIC_ID, 3, KafkaError.NONE, 60, 102, (FoundBatch(1, "obj1", 2, 0, 84, 100, 101, 7, 5, 0),)),
            BatchesResult(TOPIC_ID, 4, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        ),
    ),
    "DescribeFilesRequest": DescribeFiles(("obj1", "obj2")),
    "DescribeFilesResponse": DescribedFiles((FileResult("obj1", has_live_batches=True), FileResult("obj2", NOT, "no"))),
}
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_the_schemas_of_the_coordinators_api_have_every_field_of_their_values() -> None:
    for name, value in EXAMPLES.items():
        data = encode_diskless_message(value)
        schema = message(f"Diskless{name}", MESSAGES, PACKAGE).schema(0)

        assert decode_diskless_message(type(value), data) == value
        assert isinstance(read_whole(schema, data), dict), name
        for wrong in (*(data[:end] for end in range(len(data))), data + b"\0", data[:-1] + b"\x01\x00\x00"):
            with pytest.raises(DecodeError):
                pytest.fail(f"{name}: {decode_diskless_message(type(value), wrong)}")


def test_requests_have_the_api_keys_of_their_definitions() -> None:
    for api_key, request in REQUESTS.items():
        (name,) = (name for name, value in EXAMPLES.items() if type(value) is request)
        for one in (name, name.replace("Request", "Response")):
            assert message(f"Diskless{one}", MESSAGES, PACKAGE).api_key == api_key, one


def test_commit_file_byte_for_byte() -> None:
    topic = "00112233445566778899aabbccddeeff"

    assert encode_diskless_message(FILE).hex() == (
        "056f626a31010000000000000054030000000400000002"
        f"020200000000{topic}000000030000000000000054"
        "000000000000000000000000000000010000018bcfe568050000000000000000050000000000070000000800"
        "0000ea6000"
    )


@given(st.lists(st.tuples(st.sampled_from([TOPIC_ID, OTHER]), st.integers(0, 9), INT64), max_size=8))
def test_partitions_of_a_topic_are_sent_together_and_keep_their_order(asked: list[tuple[str, int, int]]) -> None:
    request = ListOffsets(tuple(OffsetQuery(*one) for one in asked))

    sent = decode_diskless_message(ListOffsets, encode_diskless_message(request))

    first = {one[0]: -place for place, one in reversed([*enumerate(asked)])}
    assert sent.partitions == tuple(sorted(request.partitions, key=lambda one: -first[one.topic_id]))


def test_an_unknown_error_code_is_undecodable() -> None:
    data = encode_diskless_message(CommittedFile((BatchResult(),))).replace(b"\x02\0\0", b"\x02\x7f\0", 1)

    with pytest.raises(DecodeError, match="32512"):
        decode_diskless_message(CommittedFile, data)


def test_error_codes_are_kafkas() -> None:
    for error in KafkaError:
        kafkas: Any = for_code(int(error))
        assert error.name.startswith(kafkas.message) or (error, kafkas.message) == (KafkaError.NONE, "NO_ERROR")


IMPOSSIBLE_BATCHES: dict[str, dict[str, Any]] = {
    "batch 0 has partition -1": {"partition": -1},
    "bytes 1 to 85 of a file of 84": {"byte_offset": 1},
    "bytes 0 to 0": {"byte_size": 0},
    "offsets 0 to -1": {"last_offset": -1},
    "offsets 0 to 2147483648": {"last_offset": 2**31},
    "magic 1": {"magic": 1},
    "timestamp type 2": {"timestamp_type": 2},
    "sequences 7 to 9": {"last_sequence": 9},
    "epoch -1": {"producer_epoch": -1},
}
IMPOSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("a key and a size", {"object_key": ""}),
    ("a key and a size", {"file_size": -1, "batches": ()}),
    ("format 2", {"object_format": 2}),
    (r"\[\] are not owners", {"owner_ids": ()}),
    (r"\[4, 4\] are not owners", {"owner_ids": (4, 4)}),
    (r"\[4, -1\] are not owners", {"owner_ids": (4, -1)}),
    ("coordinator 4 is not one of the owners", {"owner_ids": (2,)}),
    ("overlap", {"batches": (BATCH, BATCH)}),
    *((reason, {"batches": (BATCH._replace(**change),)}) for reason, change in IMPOSSIBLE_BATCHES.items()),
]


def test_commit_file_that_no_broker_can_have_uploaded_is_refused() -> None:
    for reason, change in IMPOSSIBLE:
        refusal = FILE._replace(**change).refusal(4)

        assert refusal is not None, change
        assert refusal.error is KafkaError.INVALID_REQUEST, change
        assert re.search(reason, refusal.message), change


def test_commit_file_takes_sequences_that_wrap_around_and_batches_without_a_producer() -> None:
    wrapped = BATCH._replace(base_sequence=2**31 - 1, last_sequence=0)
    plain = BATCH._replace(byte_offset=84, producer_id=-1, producer_epoch=-1, base_sequence=-1, last_sequence=-1)

    assert FILE._replace(file_size=168, batches=(plain, wrapped)).refusal(4) is None


def test_what_is_refused_whatever_the_coordinators_state_is() -> None:
    names = dict.fromkeys(("", "..", "t\n", "t" * 250), KafkaError.INVALID_TOPIC_EXCEPTION)
    for name, error in {"t.1-a_B": None, **names}.items():
        assert_refused(CreatablePartitions(TOPIC_ID, name, 1), error)
    assert_refused(CreatablePartitions(TOPIC_ID, "t", 0), KafkaError.INVALID_PARTITIONS)
    assert_refused(OffsetQuery(TOPIC_ID, 0, LATEST_TIERED), None)
    assert_refused(OffsetQuery(TOPIC_ID, 0, -6), KafkaError.UNSUPPORTED_VERSION)


def assert_refused(asked: CreatablePartitions | OffsetQuery, error: KafkaError | None) -> None:
    refusal = asked.refusal()
    assert (refusal and refusal.error) is error, asked
