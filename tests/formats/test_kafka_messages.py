"""Kafka's message definitions as schemas: the copies are Kafka's own, and every form of definition is understood."""

from __future__ import annotations

import json
from zipfile import ZipFile

import pytest

from tests.rigs.driven_brokers import jars_of
from tests.rigs.message_definitions import COPIES, RELEASE, definitions
from tieredctl.errors import DecodeError
from tieredctl.formats.kraft_log import KraftRecordType, kraft_schema
from tieredctl.formats.message_json import Message, message, read_message
from tieredctl.formats.schema import Array, Field, Length, NullableStruct, Primitive, Struct
from tieredctl.formats.wire import read_whole, writer

UUID = bytes(range(16))


def every_schema(defined: Message) -> list[Struct]:
    return [defined.schema(version) for version in range(defined.versions.first, defined.latest_version + 1)]


def message_with(*fields: dict[str, object], common: tuple[dict[str, object], ...] = ()) -> Message:
    definition = {"name": "M", "validVersions": "0-3", "flexibleVersions": "2+", "fields": fields}
    return read_message(json.dumps(definition | {"commonStructs": common}))


@pytest.mark.integration
def test_the_copies_are_those_of_kafkas_jars() -> None:
    of_kafka = definitions(jars_of(RELEASE))

    assert {copy.name: copy.read_bytes() for copy in COPIES.iterdir()} == of_kafka


@pytest.mark.integration
def test_whatever_3_9_wrote_is_described_the_same_by_the_later_definitions() -> None:
    older = [read_message(text.decode()) for name, text in definitions(jars_of("3.9.1")).items() if name != "NOTICE"]
    ours = {found.name: found for found in (message(copy.stem) for copy in COPIES.glob("*.json"))}

    assert len(older) == len(ours) - 1
    for found in older:
        assert every_schema(found) == every_schema(ours[found.name])[: found.latest_version + 1]


@pytest.mark.integration
def test_every_message_of_kafkas_clients_is_understood() -> None:
    with ZipFile(jars_of(RELEASE).folder / f"kafka-clients-{RELEASE}.jar") as jar:
        texts = [jar.read(name).decode() for name in jar.namelist() if name.endswith(".json") and "/message/" in name]
    schemas = [
        schema for text in texts if '"validVersions": "none"' not in text for schema in every_schema(read_message(text))
    ]

    assert len(schemas) > 600


@pytest.mark.parametrize("kind", KraftRecordType)
def test_a_metadata_record_has_the_api_key_of_its_definition(kind: KraftRecordType) -> None:
    defined = kind.message

    assert defined.api_key == kind
    assert defined.name == kind.name.title().replace("_", "") + "Record"


def test_every_metadata_record_that_is_defined_has_a_type() -> None:
    defined = [message(copy.stem) for copy in COPIES.glob("*.json")]
    records = {found.api_key for found in defined if found.name.endswith("Record") and found.api_key is not None}

    assert records == set(KraftRecordType)


@pytest.mark.parametrize(("api_key", "version"), [(13, 0), (29, 0), (2**32 - 1, 0), (2, 1), (2, 2**32 - 1)])
def test_a_type_or_version_that_is_not_known_has_no_schema(api_key: int, version: int) -> None:
    assert kraft_schema(api_key, version) is None


def test_comments_and_what_looks_like_one() -> None:
    text = """// before
    { // "name": "Wrong",
      "name": "M", "validVersions": "0", "flexibleVersions": "none", // after
      "fields": [{"name": "F", "type": "string", "versions": "0+", "default": "a//b \\"c\\" // d"}] }"""

    assert read_message(text).schema(0) == Struct("M", (Field("F", Length.STRING, default='a//b "c" // d'),))


def test_a_field_comes_and_goes_and_becomes_tagged_and_nullable_with_the_versions() -> None:
    defined = message_with(
        {"name": "Gone", "type": "int8", "versions": "0"},
        {"name": "Later", "type": "[]string", "versions": "1+", "nullableVersions": "2+", "default": "null"},
        {"name": "Tagged", "type": "int64", "versions": "1+", "taggedVersions": "3+", "tag": "0", "default": "-1"},
    )
    strings, tagged = Length.STRING, Primitive.INT64

    assert [schema.flexible for schema in every_schema(defined)] == [False, False, True, True]
    assert [schema.fields for schema in every_schema(defined)] == [
        (Field("Gone", Primitive.INT8, default=0),),
        (Field("Later", Array(strings)), Field("Tagged", tagged, default=-1)),
        (Field("Later", Array(strings, nullable=True)), Field("Tagged", tagged, default=-1)),
        (Field("Later", Array(strings, nullable=True)), Field("Tagged", tagged, tag=0, default=-1)),
    ]
    with pytest.raises(KeyError):
        defined.schema(4)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("bool", "true", True),
        ("bool", False, False),
        ("int32", "0x7fffffff", 2**31 - 1),
        ("int16", -1, -1),
        ("int64", None, 0),
        ("float64", "1.5", 1.5),
        ("float64", None, 0.0),
        ("string", None, ""),
        ("string", "null", None),
        ("bytes", None, b""),
        ("uuid", None, bytes(16)),
        ("uuid", "AAECAwQFBgcICQoLDA0ODw", UUID),
        ("[]int32", None, []),
        ("[]int32", "null", None),
        ("S", None, {"A": 0, "B": "x"}),
        ("S", "null", None),
    ],
)
def test_a_field_that_is_not_set_has_its_default(kind: str, given: object, expected: object) -> None:
    field = {"name": "F", "type": kind, "versions": "0+", "nullableVersions": "0+", "taggedVersions": "2+", "tag": 0}
    struct: dict[str, object] = {
        "name": "S",
        "versions": "0+",
        "fields": [
            {"name": "A", "type": "int8", "versions": "0+"},
            {"name": "B", "type": "string", "versions": "0+", "default": "x"},
        ],
    }
    schema = message_with(field | ({} if given is None else {"default": given}), common=(struct,)).schema(2)

    (found,) = schema.fields
    assert found.default == expected
    assert writer(schema)({"F": expected}) == b"\0"
    assert read_whole(schema, b"\0") == {"F": expected}


def test_a_default_is_not_shared_by_those_who_read_it() -> None:
    schema = message_with({"name": "F", "type": "[]int32", "versions": "2+", "taggedVersions": "2+", "tag": 0}).schema(
        2
    )
    read_whole(schema, b"\0")["F"].append(1)

    assert read_whole(schema, b"\0") == {"F": []}


NULLABLE = Struct("Outer", (Field("F", NullableStruct(Struct("Inner", (Field("A", Primitive.INT16),)))),))
INT32S = Struct("Outer", (Field("F", Array(Primitive.INT32, nullable=True)),), flexible=True)


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (NULLABLE, None, "ff"),
        (NULLABLE, {"A": 5}, "01 0005"),
        (INT32S, None, "00 00"),
        (INT32S, [], "01 00"),
        (INT32S, [1, -1], "03 00000001 ffffffff 00"),
        (Struct("Outer", (Field("F", Array(Primitive.UUID)),)), [UUID, UUID], "00000002" + UUID.hex() * 2),
        (Struct("Outer", (Field("F", Array(Length.STRING, nullable=True)),)), None, "ffffffff"),
        (Struct("Outer", (Field("F", Array(Length.STRING)),)), ["a", ""], "00000002 0001 61 0000"),
        (Struct("Outer", (Field("F", Primitive.FLOAT64),)), 1.5, "3ff8000000000000"),
    ],
)
def test_bytes_of_a_value(schema: Struct, value: object, data: str) -> None:
    assert writer(schema)({"F": value}) == bytes.fromhex(data)
    assert read_whole(schema, bytes.fromhex(data)) == {"F": value}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (NULLABLE, ""),
        (NULLABLE, "01 00"),
        (INT32S, "03 00000001 00"),
        (INT32S, "ffffffff0f"),
        (Struct("Outer", (Field("F", Array(Primitive.INT32)),), flexible=True), "00"),
        (Struct("Outer", (Field("F", Array(Primitive.UUID)),)), "7fffffff"),
        (Struct("Outer", (Field("F", Array(Primitive.UUID)),)), "ffffffff"),
    ],
)
def test_bytes_that_are_not_a_value(schema: Struct, data: str) -> None:
    with pytest.raises(DecodeError):
        read_whole(schema, bytes.fromhex(data))
