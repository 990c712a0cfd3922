"""The owner of a log directory: `meta.properties` (MetaProperties, MetaPropertiesVersion)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.java_properties import encode_properties, read_properties
from tieredctl.formats.schema import Primitive
from tieredctl.formats.text_lines import whole_number
from tieredctl.formats.varints import Buffer
from tieredctl.model.ids import uuid_bytes

META_PROPERTIES_FILE = "meta.properties"
ZOOKEEPER_VERSION, KRAFT_VERSION = range(2)

_NODE_ID_KEYS = {ZOOKEEPER_VERSION: "broker.id", KRAFT_VERSION: "node.id"}


class MetaProperties(NamedTuple):
    """A log directory's owner. Version 0 may lack every field; version 1 may lack only the directory id.

    `node_id` is the broker's id in version 0.
    """

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def read_meta_properties(data: Buffer) -> MetaProperties:
    """Raises DecodeError where a broker would refuse to start on the file."""
    properties = read_properties(data)
    version = whole_number(properties.get("version", "0"), Primitive.INT32, 0)
    if version not in _NODE_ID_KEYS:
        raise DecodeError(f"meta.properties has version {version}", 0)
    node_id = _node_id(properties, _NODE_ID_KEYS[version])
    meta_properties = MetaProperties(version, properties.get("cluster.id"), node_id, _directory_id(properties))
    if version == KRAFT_VERSION and (meta_properties.cluster_id is None or meta_properties.node_id is None):
        raise DecodeError("meta.properties of version 1 lacks cluster.id or node.id", 0)
    return meta_properties


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """The file's bytes, without the comments that Java puts in front."""
    properties = {
        "version": str(meta.version),
        "cluster.id": meta.cluster_id,
        _NODE_ID_KEYS[meta.version]: None if meta.node_id is None else str(meta.node_id),
        "directory.id": meta.directory_id,
    }
    return encode_properties({key: value for key, value in properties.items() if value is not None})


def _node_id(properties: Mapping[str, str], key: str) -> int | None:
    if key not in properties:
        return None
    node_id = whole_number(properties[key], Primitive.INT32, 0)
    if node_id < 0:
        raise DecodeError(f"meta.properties has {key} {node_id}", 0)
    return node_id


def _directory_id(properties: Mapping[str, str]) -> str | None:
    text = properties.get("directory.id")
    if text is not None:
        try:
            uuid_bytes(text)
        except ValueError:
            raise DecodeError("directory.id is not a Kafka Uuid", 0) from None
    return text
