"""Whose a log directory is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.meta_properties import (
    META_PROPERTIES_FILE,
    ZOOKEEPER_VERSION,
    MetaProperties,
    read_meta_properties,
)


def log_dir_owner(log_dir: Path) -> MetaProperties:
    """By its `meta.properties`; with no field where there is no usable one, as in a copy of some folders."""
    with suppress(OSError, DecodeError):
        return read_meta_properties((log_dir / META_PROPERTIES_FILE).read_bytes())
    return MetaProperties(ZOOKEEPER_VERSION, None, None, None)
