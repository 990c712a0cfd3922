"""The names that the plugin gives (ObjectKeyFactory):
`<key.prefix><topic>-<topic id>/<partition>/<start offset, 20 digits>-<segment id>.<suffix>`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.layout import (
    ExplainedKey,
    Layout,
    OtherForm,
    Part,
    RecordedMetadata,
    Rewrapping,
    SegmentIdentity,
    SegmentReader,
)
from tieredctl.ports.object_store import ObjectStore
from tieredctl_aiven.custom_metadata import CustomMetadata, encode_custom_metadata, read_custom_metadata
from tieredctl_aiven.iceberg import FORM as ICEBERG
from tieredctl_aiven.iceberg import iceberg_object
from tieredctl_aiven.key_prefix import MAIN_PATH, key_prefix_of
from tieredctl_aiven.keys import KEY_PAIR_ID, PrivateKeys, private_keys
from tieredctl_aiven.keys import OPTION as PRIVATE_KEY

NAME = "aiven"
KEY_PREFIX = "key-prefix"
CUSTOM_METADATA_FIELDS = "custom-metadata-fields"
SEGMENT_FORMAT = "segment-format"
_FORMATS = ("kafka", ICEBERG)
_FIELDS = ("REMOTE_SIZE", "OBJECT_PREFIX", "OBJECT_KEY")
_SUFFIXES = {Part.LOG: ".log", Part.INDEXES: ".indexes", Part.MANIFEST: ".rsm-manifest"}
_PARTS = {suffix: part for part, suffix in _SUFFIXES.items()}
_KEY = re.compile(rf"{MAIN_PATH}(?P<suffix>{'|'.join(map(re.escape, _PARTS))})")
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AivenLayout:
    """Three objects for each segment: its log, its indexes, and a manifest that says how they were transformed."""

    prefix: str | None = None
    """`key.prefix`, without what the store's URL has of it; None until it is detected from the store's keys."""
    root: str = "/"
    """The store's URL, with a slash at its end."""
    keys: PrivateKeys = field(default_factory=PrivateKeys)
    custom_metadata_fields: frozenset[str] = frozenset()
    """The plugin's `custom.metadata.fields.include`."""
    segment_format: str = _FORMATS[0]
    """The plugin's `segment.format`. Whatever it is, there may be segments in either format."""
    key_pair_id: str | None = None
    """The plugin's `encryption.key.pair.id`, where data keys are to be wrapped."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def verbatim_parts(self) -> frozenset[Part]:
        return frozenset()  # they are transformed, as a manifest says

    def settled_in(self, store: ObjectStore) -> Layout:
        prefix = key_prefix_of(store) if self.prefix is None else self.prefix
        url = store.url
        # Of a folder without a name, whose URL ends in two slashes, both are in keys.
        return replace(self, prefix=prefix, root=url if url.endswith("//") else url.rstrip("/") + "/")

    def explain(self, key: str) -> ExplainedKey | None:
        prefix = self.prefix or ""
        match = _KEY.fullmatch(key, len(prefix)) if key.startswith(prefix) else None
        if match is None:
            return None
        partition, start_offset = int(match["partition"]), int(match["start_offset"])
        if partition > _MAX_PARTITION or start_offset > _MAX_OFFSET:
            return None
        part = _PARTS[match["suffix"]]
        return ExplainedKey(match["topic"], match["topic_id"], partition, start_offset, match["segment_id"], part)

    def other_form(self, key: str) -> OtherForm | None:
        return iceberg_object(key) if self.explain(key) is None else None

    @property
    def form_outside(self) -> OtherForm | None:
        return OtherForm(ICEBERG, None, None) if self.segment_format == ICEBERG else None

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        return f"{self.prefix or ''}{_partition_path(partition)}"

    def promised_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        fields = _custom_metadata(segment)
        main_path = fields.object_key if fields.object_key is not None else _main_path(segment)
        stem = self._prefix_of(fields) + main_path
        return {part: stem + suffix for part, suffix in _SUFFIXES.items()}

    def optional_objects(self, segment: SegmentIdentity) -> dict[Part, str]:  # noqa: ARG002 - there are never others
        return {}

    def original_log_size(self, stored: Mapping[Part, int]) -> int | None:  # noqa: ARG002 - the manifest has it
        return None

    def stored_size(self, segment: SegmentIdentity) -> int | None:
        return _custom_metadata(segment).remote_size

    def recorded_metadata(self, store: ObjectStore, segment: SegmentIdentity) -> RecordedMetadata | None:
        from tieredctl_aiven.recorded_metadata import read_recorded_metadata

        return read_recorded_metadata(store, self.promised_objects(segment)[Part.MANIFEST], segment)

    def custom_metadata(self, segment: SegmentIdentity, stored_bytes: int, like: bytes | None) -> bytes | None:
        pattern = self._chosen_fields() if like is None else _decoded(like)
        return encode_custom_metadata(
            CustomMetadata(
                remote_size=None if pattern.remote_size is None else stored_bytes,
                object_prefix=None if pattern.object_prefix is None else self._own_prefix(pattern),
                object_key=None if pattern.object_key is None else _main_path(segment),
            )
        )

    def _chosen_fields(self) -> CustomMetadata:
        size, prefix, key = (name in self.custom_metadata_fields for name in _FIELDS)
        return CustomMetadata(0 if size else None, self._whole_prefix() if prefix else None, "" if key else None)

    def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
        # Here, so that code that only looks at keys need not load numpy.
        from tieredctl_aiven.data_key import open_data_key
        from tieredctl_aiven.segment import ObjectsReader

        objects = self.promised_objects(segment)
        manifest = objects[Part.MANIFEST]
        return ObjectsReader(store, objects, partial(open_data_key, self.keys, store, manifest, self.prefix or ""))

    def stored_objects(
        self, store: ObjectStore, segment: RemoteLogSegmentMetadata, parts: Mapping[Part, bytes]
    ) -> Mapping[Part, bytes]:
        from tieredctl_aiven.data_key import open_data_key
        from tieredctl_aiven.storing import Storing

        objects, prefix = self.promised_objects(segment), self.prefix or ""
        data_key = partial(open_data_key, self.keys, store, objects[Part.MANIFEST], prefix)
        beside = self.partition_prefix(segment.topic_id_partition)
        return Storing(store, objects, beside, data_key, self.keys).objects(segment, parts)

    def rewrapping(self, store: ObjectStore, options: Mapping[str, str], *, may_grow: bool) -> Rewrapping:
        from tieredctl_aiven.data_key import open_data_key
        from tieredctl_aiven.rewrapping import KeyPair, ManifestRewrapping

        wrapping, prefix = _layout_with(options), self.prefix or ""
        pair = KeyPair.given(wrapping.keys, wrapping.key_pair_id)
        return ManifestRewrapping(
            lambda key, found: open_data_key(self.keys, store, key, prefix, found), pair, may_grow=may_grow
        )

    def _prefix_of(self, fields: CustomMetadata) -> str:
        """A segment keeps the prefix that it was copied under. Keys do not contain the part in the store's URL."""
        named = fields.object_prefix
        return self.prefix or "" if named is None or self._is_own(named) else named

    def _own_prefix(self, pattern: CustomMetadata) -> str:
        """The plugin's own prefix for the keys here: another segment's prefix, if it is the same one."""
        named = pattern.object_prefix
        return named if named is not None and self._is_own(named) else self._whole_prefix()

    def _is_own(self, named: str) -> bool:
        prefix = self.prefix or ""
        return named.endswith(prefix) and self.root.endswith("/" + named.removesuffix(prefix))

    def _whole_prefix(self) -> str:
        """The part of key.prefix that the store's URL names is not in the keys here, but in the plugin's."""
        return _folder_in_bucket(self.root) + (self.prefix or "")


def _folder_in_bucket(url: str) -> str:
    """The part after the bucket in a URL such as s3://bucket/folder/; for a folder on a disk it is not known."""
    _, separator, rest = url.partition("://")
    return rest.partition("/")[2] if separator else ""


def _partition_path(partition: TopicIdPartition) -> str:
    return f"{partition.topic}-{partition.topic_id}/{partition.partition}/"


def _main_path(segment: SegmentIdentity) -> str:
    return f"{_partition_path(segment.topic_id_partition)}{segment.start_offset:020}-{segment.segment_id}"


def _custom_metadata(segment: SegmentIdentity) -> CustomMetadata:
    return _decoded(segment.custom_metadata or b"")


def _decoded(data: bytes) -> CustomMetadata:
    try:
        return read_custom_metadata(data)
    except DecodeError:  # another storage manager's, which does not concern these keys
        return CustomMetadata()


def aiven_layout(options: Mapping[str, str]) -> Layout:
    """The layout. Options: `private-key`, a file; `key-prefix`, the plugin's `key.prefix` where the store's keys do
    not show it; `custom-metadata-fields`, its `custom.metadata.fields.include`, for rebuilt metadata;
    `segment-format=iceberg`, its `segment.format`, where tables are in another store; `key-pair-id`, its
    `encryption.key.pair.id`, where data keys are wrapped again. Raises TieredctlError `usage` for another option, and
    what `private_keys` raises."""
    return _layout_with(options)


def _layout_with(options: Mapping[str, str]) -> AivenLayout:
    for option in options:
        if option not in (PRIVATE_KEY, KEY_PREFIX, CUSTOM_METADATA_FIELDS, SEGMENT_FORMAT, KEY_PAIR_ID):
            raise TieredctlError(ErrorCode.USAGE, f"Layout {NAME} has no option {option!r}.")
    segment_format = options.get(SEGMENT_FORMAT, _FORMATS[0])
    if segment_format not in _FORMATS:
        hint = f"Give one of {', '.join(_FORMATS)}."
        raise TieredctlError(ErrorCode.USAGE, f"{SEGMENT_FORMAT} cannot be {segment_format!r}.", hint=hint)
    keys, fields = private_keys(options.get(PRIVATE_KEY)), _field_names(options.get(CUSTOM_METADATA_FIELDS, ""))
    return AivenLayout(
        *(options.get(KEY_PREFIX), "/", keys, fields, segment_format),
        key_pair_id=options.get(KEY_PAIR_ID),
    )


def _field_names(text: str) -> frozenset[str]:
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    for name in sorted(names.difference(_FIELDS)):
        hint = f"The fields are {', '.join(_FIELDS)}."
        raise TieredctlError(ErrorCode.USAGE, f"{CUSTOM_METADATA_FIELDS} has no field {name!r}.", hint=hint)
    return names
