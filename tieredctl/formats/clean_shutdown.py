"""The mark that a broker leaves in a log directory when it stops in good order: `.kafka_cleanshutdown`.

It is removed at the next start; without it, a broker recovers its logs. Source: CleanShutdownFileHandler.
"""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.formats.json_lines import LineField, LineFormat
from tieredctl.formats.varints import Buffer

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


class CleanShutdown(NamedTuple):
    """`broker_epoch` is that of the broker's last registration. Before Kafka 3.7 the file was empty: both are None."""

    version: int | None
    broker_epoch: int | None


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is not a whole number")
    return value


_FORMAT = LineFormat(CleanShutdown, version=LineField("version", _whole), broker_epoch=LineField("brokerEpoch", _whole))


def read_clean_shutdown(data: Buffer) -> CleanShutdown:
    """Raises DecodeError for what no broker wrote."""
    return _FORMAT.decode(bytes(data)) if len(data) else CleanShutdown(None, None)


def encode_clean_shutdown(shutdown: CleanShutdown) -> bytes:
    """One line of JSON without its end, as Kafka writes it."""
    return b"" if shutdown.version is None else _FORMAT.encode(shutdown).rstrip(b"\n")
