"""The options of a data source: those of the command line, with their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.quantities import time_ms
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import AUTO
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, PluginSource, StorePlace

METADATA_OPTIONS = (
    "log-dir",
    "bootstrap-server",
    "command-config",
    "export",
    "metadata-source",
    "metadata-source-option.NAME",
)
"""Where metadata is: log directories are separated by commas."""
STORE_OPTIONS = ("store", "store-option.NAME", "layout", "layout-option.NAME")
"""Where objects are, and how their keys map to segments."""
AS_OF = "as-of"
"""The point up to which metadata is believed: a time, or the last offset of each metadata partition as `0:12,1:40`."""
METADATA_PARTITION = "metadata-partition"
"""Which metadata partition alone is read."""
PARTITION_OPTIONS = ("topic", "topic-id", "partition")
"""Which user partitions are meant."""
_NAMED = ".NAME"
_OFFSETS = re.compile(r"([0-9]{1,10}:[0-9]{1,18}(,[0-9]{1,10}:[0-9]{1,18})*)?")
_LARGEST_INT32 = (1 << 31) - 1


def options_of(place: MetadataPlace) -> dict[str, str]:
    """Those that name a place, of which nothing is as of a point in the past."""
    config = None if place.cluster is None else place.cluster.command_config
    given = {
        "log-dir": ",".join(map(str, place.log_dirs)) or None,
        "bootstrap-server": None if place.cluster is None else place.cluster.bootstrap_server,
        "command-config": None if config is None else str(config),
        "export": None if place.export is None else str(place.export),
    }
    if place.plugin is not None:
        given["metadata-source"] = f"{place.plugin.name}:{place.plugin.location}"
        given |= {f"metadata-source-option.{name}": value for name, value in place.plugin.options.items()}
    return {name: value for name, value in given.items() if value is not None}


class SourceOptions:
    """What `spark.read.option` gave. An option may be written without its dashes: `logDir` is `log-dir`. Spark makes
    names lower case, those of `store-option.NAME` and its like too."""

    def __init__(self, source: str, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        """Raises TieredctlError `usage` for an option that `source` does not have."""
        self._values: dict[str, str] = {}
        self._named: dict[str, dict[str, str]] = {}
        spelled = {_plain(name.removesuffix(_NAMED)): name for name in known}
        for written, value in given.items():
            family, dot, name = written.partition(".")
            option = spelled.get(_plain(family))
            if option is None or option.endswith(_NAMED) != bool(dot and name):
                message = f"{source} has no option {written!r}; its options are {', '.join(known)}."
                raise TieredctlError(ErrorCode.USAGE, message)
            if dot:
                self._named.setdefault(option, {})[name] = value
            else:
                self._values[option] = value

    def text(self, name: str) -> str | None:
        """As it was given; None if it was not."""
        return self._values.get(name)

    def number(self, name: str, least: int = 0) -> int | None:
        """Raises TieredctlError `usage` unless it is a whole number of at least that."""
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and least <= int(text) <= _LARGEST_INT32):
            raise TieredctlError(ErrorCode.USAGE, f"{name} {text!r} is not a whole number from {least} on.")
        return int(text)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        """`otherwise` where it was not given. Raises TieredctlError `usage` for what is neither true nor false."""
        text = self.text(name)
        if text is None:
            return otherwise
        if text.lower() not in ("true", "false"):
            raise TieredctlError(ErrorCode.USAGE, f"{name} {text!r} is neither true nor false.")
        return text.lower() == "true"

    def metadata_place(self) -> MetadataPlace:
        """Raises TieredctlError unless exactly one source of metadata is given."""
        server, config = self.text("bootstrap-server"), self._path("command-config")
        if config is not None and server is None:
            raise TieredctlError(ErrorCode.USAGE, "command-config is for bootstrap-server.")
        place = MetadataPlace(
            tuple(Path(folder.strip()) for folder in (self.text("log-dir") or "").split(",") if folder.strip()),
            None if server is None else ClusterPlace(server, config),
            self._path("export"),
            self._point(),
            PluginSource.given(self.text("metadata-source"), self._named.get("metadata-source-option.NAME", {})),
        )
        if not place.is_given:
            message = "There is nothing to read metadata from: give log-dir, bootstrap-server or export."
            raise TieredctlError(ErrorCode.NO_SOURCE, message)
        return place

    def store_place(self) -> StorePlace:
        """Raises TieredctlError where no store is given."""
        url = self.text("store")
        if url is None:
            raise TieredctlError(ErrorCode.NO_STORE, "The option store does not name a store.")
        options, layout_options = (self._named.get(name, {}) for name in ("store-option.NAME", "layout-option.NAME"))
        return StorePlace(url, options, self.text("layout") or AUTO, layout_options)

    def selection(self, segment_id: str | None = None) -> Selection:
        """The partitions that are meant, or one segment of them."""
        return Selection.of(self.text("topic"), self.text("topic-id"), self.number("partition"), segment_id)

    def _point(self) -> AsOf | None:
        text = self.text(AS_OF)
        if text is None:
            return None
        if _OFFSETS.fullmatch(text):
            pairs = (pair.split(":") for pair in text.split(",") if pair)
            return AsOf(offsets={int(number): int(offset) for number, offset in pairs})
        return AsOf(timestamp_ms=time_ms(text))

    def _path(self, name: str) -> Path | None:
        text = self.text(name)
        return None if text is None else Path(text)


def _plain(name: str) -> str:
    return name.replace("-", "").lower()
