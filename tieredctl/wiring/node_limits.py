"""The retention limits of one node, and where each is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.java_properties import read_properties
from tieredctl.kafka.log_dir_owner import log_dir_owner
from tieredctl.kafka.server_properties import SERVER_PROPERTIES
from tieredctl.kraft.retention import (
    DEFAULT_RETENTION_BYTES,
    DEFAULT_RETENTION_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    RetentionLimits,
)

_NODE_ID = "node.id"
_Stated = tuple[Path, Mapping[str, str]]
"""A file, and its settings."""


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """Kafka's two settings, and for each of them who says so."""

    limits: RetentionLimits
    sources: Mapping[str, str]
    unknown: tuple[str, ...]
    """The settings that are Kafka's defaults here because no file of the node was found: its own may be others."""

    def demand_known(self) -> None:
        """Raises TieredctlError where a limit may be another than the node's."""
        for name in self.unknown:
            message = f"The node's {name} is not known: no {SERVER_PROPERTIES} with its {_NODE_ID} is in or next to it."
            hint = f"Give --server-properties, or --{name.replace('.', '-')}."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)


def node_limits(
    log_dir: Path,
    *,
    max_age_ms: int | None = None,
    max_bytes: int | None = None,
    server_properties: Path | None = None,
) -> NodeLimits:
    """The limits that are given, or else those of the node's `server.properties`, or else Kafka's defaults.

    Without `server_properties`, a file in or next to the log directory is the node's if it has the same `node.id` as
    the directory's `meta.properties`. Raises TieredctlError for a named file that cannot be read or is another node's,
    and for a value that is not a number.
    """
    found = _own_file(log_dir) if server_properties is None else _named_file(server_properties, log_dir)
    file, settings = (None, {}) if found is None else found
    given = {RETENTION_MS: max_age_ms, RETENTION_BYTES: max_bytes}
    defaults = {RETENTION_MS: DEFAULT_RETENTION_MS, RETENTION_BYTES: DEFAULT_RETENTION_BYTES}
    values: dict[str, int] = {}
    sources: dict[str, str] = {}
    for name, default in defaults.items():
        option = given[name]
        if option is not None:
            values[name], sources[name] = option, f"--{name.replace('.', '-')}"
        elif name in settings:
            values[name], sources[name] = _number(name, settings[name], file), str(file)
        else:
            why = "no file of the node was found" if file is None else f"{file} has none"
            values[name], sources[name] = default, f"Kafka's default: {why}"
    unknown = tuple(name for name in defaults if file is None and given[name] is None)
    return NodeLimits(RetentionLimits(values[RETENTION_MS], values[RETENTION_BYTES]), sources, unknown)


def _own_file(log_dir: Path) -> _Stated | None:
    own = _node_id(log_dir)
    for folder in (log_dir, log_dir.resolve().parent):
        try:
            settings = read_properties((folder / SERVER_PROPERTIES).read_bytes())
        except (OSError, DecodeError):
            continue
        if own is not None and settings.get(_NODE_ID) == own:
            return folder / SERVER_PROPERTIES, settings
    return None


def _named_file(file: Path, log_dir: Path) -> _Stated:
    try:
        settings = read_properties(file.read_bytes())
    except (OSError, DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        hint = "Name the node's server.properties, as a user who may read it."
        raise TieredctlError(ErrorCode.USAGE, f"{file} cannot be read: {why}.", hint=hint) from None
    stated, own = settings.get(_NODE_ID), _node_id(log_dir)
    if own not in (None, stated):
        whose = "has no node.id" if stated is None else f"is of node {stated}"
        message = f"{file} {whose}, and {log_dir} is of node {own}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give the file of this node.")
    return file, settings


def _node_id(log_dir: Path) -> str | None:
    node_id = log_dir_owner(log_dir).node_id
    return None if node_id is None else str(node_id)


def _number(name: str, text: str, file: Path | None) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"{name} is {text!r} in {file}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=f"Give --{name.replace('.', '-')}.") from None
