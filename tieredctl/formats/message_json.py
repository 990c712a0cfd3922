"""Kafka's message definitions, the JSON files that its own code is generated from, as schemas.

The files in `kafka_messages` are those of Kafka's jars, byte for byte; `make kafka-messages` copies them. They describe
every version since the first, so one release's files read what any earlier one wrote. No library of generated classes
stands between: those know one release and make an object of each record, at half a million records a second.
Source of the format: generator/src/main/java/org/apache/kafka/message (MessageSpec, FieldSpec, Versions).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pkgutil import get_data  # which takes a tenth of the time of importlib.resources to import
from typing import Any

from tieredctl.formats.schema import Array, Field, FieldType, Length, NullableStruct, Primitive, Struct
from tieredctl.model.ids import uuid_bytes

MESSAGES = "kafka_messages"
"""The folder of Kafka's definitions, beside this module; packages with records that follow its rules have their own."""

_ZERO_UUID = bytes(16)
_PRIMITIVES = {
    "bool": Primitive.BOOL,
    "int8": Primitive.INT8,
    "int16": Primitive.INT16,
    "uint16": Primitive.UINT16,
    "int32": Primitive.INT32,
    "uint32": Primitive.UINT32,
    "int64": Primitive.INT64,
    "float64": Primitive.FLOAT64,
    "uuid": Primitive.UUID,
}
_LENGTHS = {  # by whether it may be null
    "string": {False: Length.STRING, True: Length.NULLABLE_STRING},
    "bytes": {False: Length.BYTES, True: Length.NULLABLE_BYTES},
    "records": {False: Length.BYTES, True: Length.NULLABLE_BYTES},
}
_ARRAY = "[]"
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')

Definition = Mapping[str, Any]
"""A message, a struct or a field, as the file has it."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; `last` is None where it is open, and below `first` where it is empty."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> Versions:
        """`0-3`, `2+`, `1` or `none`."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)


class Message:
    """One of Kafka's messages, in all its versions."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._schemas: dict[int, Struct] = {}
        self.name: str = definition["name"]
        self.api_key: int | None = definition.get("apiKey")
        self.versions = Versions.parse(definition["validVersions"])

    @property
    def latest_version(self) -> int:
        assert self.versions.last is not None
        return self.versions.last

    def schema(self, version: int) -> Struct:
        """The schema of one of `versions`. Raises KeyError for any other."""
        if version not in self.versions:
            raise KeyError(version)
        if version not in self._schemas:
            self._schemas[version] = _Schemas(self._definition, version).message
        return self._schemas[version]


def read_message(text: str) -> Message:
    """The message that a definition's text describes, comments included."""
    return Message(json.loads(_STRING_OR_COMMENT.sub(lambda match: match[1] or "", text)))


@cache
def message(name: str, folder: str = MESSAGES, package: str = __name__.rpartition(".")[0]) -> Message:
    """The message in the file of this name, without `.json`, in a folder of a package: read once, and kept."""
    content = get_data(package, f"{folder}/{name}.json")
    assert content is not None  # Python's own loaders have data, those of zip files too
    return read_message(content.decode("utf-8"))


class _Schemas:
    """A message and its structs in one version."""

    def __init__(self, definition: Definition, version: int) -> None:
        self._definition = definition
        self._version = version
        self._flexible = version in Versions.parse(definition["flexibleVersions"])
        self._common = {struct["name"]: struct for struct in definition.get("commonStructs", ())}

    @cached_property
    def message(self) -> Struct:
        return self._struct(self._definition["name"], self._definition["fields"])

    def _struct(self, name: str, fields: Sequence[Definition]) -> Struct:
        present = [self._field(field) for field in fields if self._is_in(field, "versions")]
        return Struct(name, tuple(present), self._flexible)

    def _field(self, field: Definition) -> Field:
        tag = int(field["tag"]) if self._is_in(field, "taggedVersions") else None
        kind = self._type(field["type"], field, nullable=self._is_in(field, "nullableVersions"))
        return Field(field["name"], kind, tag, _default(kind, field.get("default")))

    def _type(self, name: str, field: Definition, *, nullable: bool) -> FieldType:
        if name.startswith(_ARRAY):
            element = self._type(name.removeprefix(_ARRAY), field, nullable=False)
            assert not isinstance(element, Array | NullableStruct)
            return Array(element, nullable)
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name in _LENGTHS:
            return _LENGTHS[name][nullable]
        struct = self._struct(name, field.get("fields") or self._common[name]["fields"])
        return NullableStruct(struct) if nullable else struct

    def _is_in(self, field: Definition, versions: str) -> bool:
        return self._version in Versions.parse(field.get(versions, "none"))


def _default(kind: FieldType, stated: Any) -> Any:
    """What a field has that nobody set: as given, in text or as a value, or else nothing of its type."""
    if stated == "null":
        return None
    if isinstance(kind, Struct | NullableStruct):
        struct = kind.struct if isinstance(kind, NullableStruct) else kind
        return {field.name: field.default for field in struct.fields}
    if isinstance(kind, Array):
        return []
    if isinstance(kind, Length):
        return stated or ("" if kind in (Length.STRING, Length.NULLABLE_STRING) else b"")
    if kind is Primitive.UUID:
        return uuid_bytes(stated) if stated else _ZERO_UUID
    if kind is Primitive.BOOL:
        return stated in (True, "true")
    if kind is Primitive.FLOAT64:
        return float(stated or 0)
    return int(stated, 0) if isinstance(stated, str) and stated else stated or 0
