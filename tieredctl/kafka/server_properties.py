"""A broker's `server.properties`, where there is one in a log directory or next to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.java_properties import read_properties

SERVER_PROPERTIES = "server.properties"


def stated_settings(log_dirs: Iterable[Path], name: str) -> Iterator[str]:
    """A setting's values in the existing files; a file that is missing or cannot be read is skipped."""
    for log_dir in log_dirs:
        for folder in (log_dir, log_dir.resolve().parent):
            try:
                properties = read_properties((folder / SERVER_PROPERTIES).read_bytes())
            except (OSError, DecodeError):
                continue
            if name in properties:
                yield properties[name]
