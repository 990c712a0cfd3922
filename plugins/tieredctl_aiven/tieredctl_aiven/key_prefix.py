"""Finds the plugin's `key.prefix` from a store's keys, so that users need not give it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import UUID_PATTERN
from tieredctl.ports.object_store import ObjectStore, list_unreserved
from tieredctl_aiven.json_fields import JsonFields

MAIN_PATH = (
    rf"(?P<topic>[A-Za-z0-9._-]+)-(?P<topic_id>{UUID_PATTERN})/(?P<partition>0|[1-9][0-9]{{0,9}})"
    rf"/(?P<start_offset>[0-9]{{20}})-(?P<segment_id>{UUID_PATTERN})"
)
"""The part of a key between prefix and suffix. An id has a known width, so that it splits in one way only."""
_KEY = re.compile(rf"(?P<stem>(?P<folder>(?s:.)*/)?{MAIN_PATH})\.(log|indexes|rsm-manifest)")
_LARGEST_MANIFEST_READ = 1 << 20
_KEYS_LOOKED_AT = 1_000
_AFTER_SLASH = chr(ord("/") + 1)


def key_prefix_of(store: ObjectStore) -> str:
    """The prefix of the first keys that look like the plugin's; empty where two listings have no such key. Raises
    TieredctlError `usage` where there are several prefixes: two clusters may share the bucket."""
    prefixes = _prefixes(store) or _prefixes(store.reconnected())
    if len(prefixes) > 1:
        named = ", ".join(repr(prefix) for prefix in prefixes)
        message = f"The keys of {store.url} have several prefixes: {named}."
        raise TieredctlError(
            ErrorCode.USAGE, message, hint="Name the cluster's key.prefix with --layout-option key-prefix=…"
        )
    return prefixes[0] if prefixes else ""


def _prefixes(store: ObjectStore) -> list[str]:
    prefixes: dict[str, str] = {}
    for match in _first_keys(store):
        folder = match["folder"] or ""
        if folder not in prefixes:
            prefixes[folder] = folder + _beginning_of_topic(store, match)
    return list(prefixes.values())


def _first_keys(store: ObjectStore) -> Iterator[re.Match[str]]:
    """The plugin's keys among the first keys of the store, one for each folder that contains a whole prefix."""
    left, after = _KEYS_LOOKED_AT, ""
    while left:
        for key in _listed(store, after, left):
            left -= 1
            match = _KEY.fullmatch(key)
            if match:
                yield match
            if match and match["folder"]:
                after = match["folder"].removesuffix("/") + _AFTER_SLASH
                break
        else:
            return


def _listed(store: ObjectStore, after: str, most: int) -> Iterator[str]:
    """The keys, as far as they can be listed."""
    stored = None
    try:
        for stored in islice(list_unreserved(store, start_after=after), most):
            yield stored.key
    except TieredctlError:
        if stored is None:
            raise


def _beginning_of_topic(store: ObjectStore, match: re.Match[str]) -> str:
    """The part of a key's topic that is prefix, since a prefix need not end with a slash: the manifest has the topic,
    too. Nothing where two readings do not say it."""
    found = _before_its_topic(store, match)
    if found is None:
        found = _before_its_topic(store.reconnected(), match)
    return found or ""


def _before_its_topic(store: ObjectStore, match: re.Match[str]) -> str | None:
    try:
        fields = JsonFields.parse(store.read(f"{match['stem']}.rsm-manifest", 0, _LARGEST_MANIFEST_READ), "manifest")
        segment_id = fields.fields("remoteLogSegmentMetadata").fields("remoteLogSegmentId")
        topic = segment_id.fields("topicIdPartition").fields("topicPartition").string("topic")
    except TieredctlError:
        return None
    return match["topic"].removesuffix(topic) if match["topic"].endswith(topic) else None
