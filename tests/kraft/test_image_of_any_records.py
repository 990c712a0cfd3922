"""Records with any values that their schemas allow: what does not fit is refused, and all of the rest can be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.schema_values import values_of
from tieredctl.formats.kraft_log import KraftRecordType, decode_kraft_record, encode_kraft_record
from tieredctl.kraft.difference import changes
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay

# few of each, so that records are about the same things
FEW: Mapping[str, st.SearchStrategy[Any]] = {
    "TopicId": st.sampled_from([bytes(16), bytes(range(16))]),
    "TopicName": st.sampled_from(["", "t"]),
    "Name": st.sampled_from(["t", "metadata.version"]),
    "PartitionId": st.integers(0, 1),
    "BrokerId": st.integers(0, 1),
    "Id": st.integers(0, 1),
    "BrokerEpoch": st.just(1),
    "Epoch": st.just(1),
    "ResourceName": st.sampled_from(["", "t"]),
}


def records(kind: KraftRecordType) -> st.SearchStrategy[bytes]:
    def of_version(version: int) -> st.SearchStrategy[bytes]:
        schema = kind.message.schema(version)
        few = {field.name: FEW[field.name] for field in schema.fields if field.name in FEW}
        if kind in (KraftRecordType.ACCESS_CONTROL_ENTRY, KraftRecordType.REMOVE_ACCESS_CONTROL_ENTRY):
            few.pop("Id")  # a Uuid there
        drawn = st.tuples(values_of(schema), st.fixed_dictionaries(few))
        return drawn.map(lambda one: encode_kraft_record(kind, version, one[0] | one[1]))

    return st.integers(kind.message.versions.first, kind.message.latest_version).flatmap(of_version)


UNKNOWN = st.binary(max_size=6).map(lambda rest: bytes([1, 99, 0]) + rest)


@given(st.lists(st.sampled_from(KraftRecordType).flatmap(records) | UNKNOWN, max_size=25))
def test_no_records_are_too_much(values: list[bytes]) -> None:
    replay = MetadataReplay()
    for offset, value in enumerate(values):
        replay.take(offset, decode_kraft_record(value))

    shown = list(changes(ClusterImage(), replay.image))
    json.dumps([(change.before, change.after, change.words) for change in shown])
    assert list(changes(replay.image, replay.image)) == []
    assert all(change.before is None for change in shown)
    assert replay.image.unknown_records.total() + len(replay.image.refused) <= len(values)
