"""The settings of one broker or controller, from a file or from the node itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tieredctl.ops.cluster.release import Release

SYSTEM_ENABLE = "remote.log.storage.system.enable"
STORAGE_PREFIX = "remote.log.storage.manager.impl.prefix"
METADATA_PREFIX = "remote.log.metadata.manager.impl.prefix"
STORAGE_CLASS = "remote.log.storage.manager.class.name"
METADATA_CLASS = "remote.log.metadata.manager.class.name"
METADATA_LISTENER = "remote.log.metadata.manager.listener.name"
CUSTOM_METADATA_MAX_BYTES = "remote.log.metadata.custom.metadata.max.bytes"
INDEX_CACHE_BYTES = "remote.log.index.file.cache.total.size.bytes"
THREAD_POOL = "remote.log.manager.thread.pool.size"
FOLLOWER_POOL = "remote.log.manager.follower.thread.pool.size"
COPIER_POOL = "remote.log.manager.copier.thread.pool.size"
EXPIRATION_POOL = "remote.log.manager.expiration.thread.pool.size"
READER_THREADS = "remote.log.reader.threads"
COPY_LAG_MS, COPY_LAG_BYTES = "log.remote.copy.lag.ms", "log.remote.copy.lag.bytes"
"""Since 4.4 (KIP-1241)."""
COPY_QUOTA = "remote.log.manager.copy.max.bytes.per.second"
FETCH_QUOTA = "remote.log.manager.fetch.max.bytes.per.second"
TOPIC_BASED = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
UNLIMITED = (1 << 63) - 1
GREATEST_INT32 = (1 << 31) - 1
FALLS_BACK = -1
"""What 3.9 shows for a thread pool with the size of the deprecated setting."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A setting that is a whole number from `least` to `greatest`, or `besides`."""

    default: int | None
    least: int
    greatest: int = UNLIMITED
    besides: int | None = None

    def allows(self, number: int) -> bool:
        return self.least <= number <= self.greatest or number == self.besides


class Truth(Enum):
    """A setting that is true or false, by its default."""

    FALSE = "false"
    TRUE = "true"


@dataclass(frozen=True, slots=True)
class Text:
    """A text setting."""

    default: str | None


Setting = Whole | Truth | Text

BROKER_SETTINGS: Mapping[str, Setting] = {
    SYSTEM_ENABLE: Truth.FALSE,
    STORAGE_PREFIX: Text("rsm.config."),
    METADATA_PREFIX: Text("rlmm.config."),
    STORAGE_CLASS: Text(None),
    METADATA_CLASS: Text(TOPIC_BASED),
    METADATA_LISTENER: Text(None),
    CUSTOM_METADATA_MAX_BYTES: Whole(128, 0, GREATEST_INT32),
    INDEX_CACHE_BYTES: Whole(1 << 30, 1),
    THREAD_POOL: Whole(None, 1, GREATEST_INT32),
    FOLLOWER_POOL: Whole(None, 1, GREATEST_INT32, FALLS_BACK),
    COPIER_POOL: Whole(10, 1, GREATEST_INT32, FALLS_BACK),
    EXPIRATION_POOL: Whole(10, 1, GREATEST_INT32, FALLS_BACK),
    "remote.log.manager.task.interval.ms": Whole(30_000, 1),
    READER_THREADS: Whole(10, 1, GREATEST_INT32),
    "remote.log.reader.max.pending.tasks": Whole(100, 1, GREATEST_INT32),
    "log.local.retention.ms": Whole(-2, -2),
    "log.local.retention.bytes": Whole(-2, -2),
    "log.retention.bytes": Whole(-1, -1),
    COPY_LAG_MS: Whole(0, -1),
    COPY_LAG_BYTES: Whole(-1, -1),
    COPY_QUOTA: Whole(UNLIMITED, 1),
    "remote.log.manager.copy.quota.window.num": Whole(11, 1, GREATEST_INT32),
    "remote.log.manager.copy.quota.window.size.seconds": Whole(1, 1, GREATEST_INT32),
    FETCH_QUOTA: Whole(UNLIMITED, 1),
    "remote.log.manager.fetch.quota.window.num": Whole(11, 1, GREATEST_INT32),
    "remote.log.manager.fetch.quota.window.size.seconds": Whole(1, 1, GREATEST_INT32),
    "remote.fetch.max.wait.ms": Whole(500, 1, GREATEST_INT32),
    "remote.list.offsets.request.timeout.ms": Whole(30_000, 1),
    "log.index.size.max.bytes": Whole(10 << 20, 4, GREATEST_INT32),
    "log.segment.bytes": Whole(1 << 30, 1, GREATEST_INT32),
    "min.insync.replicas": Whole(1, 1, GREATEST_INT32),
}
"""Kafka's RemoteLogManagerConfig with defaults and limits, and other broker settings that tiering depends on."""

METADATA_REPLICATION = "remote.log.metadata.topic.replication.factor"
METADATA_PARTITIONS = "remote.log.metadata.topic.num.partitions"
METADATA_RETENTION_MS = "remote.log.metadata.topic.retention.ms"
METADATA_MIN_ISR = "remote.log.metadata.topic.min.isr"
METADATA_TOPIC_SETTINGS: Mapping[str, Whole] = {
    METADATA_REPLICATION: Whole(3, 1, (1 << 15) - 1),
    METADATA_PARTITIONS: Whole(50, 1, GREATEST_INT32),
    METADATA_RETENTION_MS: Whole(-1, -1),
    METADATA_MIN_ISR: Whole(None, 1, (1 << 15) - 1),
    "remote.log.metadata.consume.wait.ms": Whole(120_000, 0),
    "remote.log.metadata.initialization.retry.max.timeout.ms": Whole(120_000, 0),
    "remote.log.metadata.initialization.retry.interval.ms": Whole(100, 0),
}
"""TopicBasedRemoteLogMetadataManagerConfig; in a broker's settings each has the metadata manager's prefix."""

_LISTENER = "://"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The stated values, and Kafka's defaults for the rest. `None` is a value that the node hides."""

    subject: str
    values: Mapping[str, str | None]
    release: Release | None = None

    def text(self, name: str) -> str | None:
        """The value, its default where it is not stated, or None."""
        if name in self.values:
            return self.values[name]
        setting = BROKER_SETTINGS.get(name)
        if isinstance(setting, Truth):
            return setting.value
        return None if setting is None or setting.default is None else str(setting.default)

    def number(self, name: str) -> int | None:
        """The value as a number; None where there is none, or it is hidden or not a number."""
        return as_number(self.text(name))

    def is_true(self, name: str) -> bool:
        return (self.text(name) or "").strip().lower() == "true"

    def is_hidden(self, name: str) -> bool:
        return name in self.values and self.values[name] is None

    def metadata_name(self, name: str) -> str:
        """The full name of a setting of the metadata manager."""
        return (self.text(METADATA_PREFIX) or "") + name

    def metadata_number(self, name: str) -> int | None:
        """A setting of the metadata topic, by its name without prefix; None where it is hidden or has no default."""
        full = self.metadata_name(name)
        return as_number(self.values[full]) if full in self.values else METADATA_TOPIC_SETTINGS[name].default

    def is_before(self, line: tuple[int, int]) -> bool | None:
        """Whether the release is older than a line of releases; None where unknown."""
        return None if self.release is None else self.release.line < line

    @property
    def is_only_controller(self) -> bool:
        return self._entries("process.roles") == ["controller"]

    @property
    def uses_topic_based_metadata(self) -> bool:
        return self.text(METADATA_CLASS) == TOPIC_BASED

    @property
    def log_dirs(self) -> Sequence[str]:
        return self._entries("log.dirs") or self._entries("log.dir")

    @property
    def listener_names(self) -> Sequence[str]:
        return [entry.partition(_LISTENER)[0] for entry in self._entries("listeners")]

    @property
    def retention_ms(self) -> int | None:
        """The default of topics' retention.ms; -1 is forever."""
        for name, unit in (
            ("log.retention.ms", 1),
            ("log.retention.minutes", 60_000),
            ("log.retention.hours", 3_600_000),
        ):
            number = as_number(self.values.get(name))
            if number is not None:
                return max(-1, number * unit)
        return 168 * 3_600_000

    def _entries(self, name: str) -> list[str]:
        return [entry.strip() for entry in (self.text(name) or "").split(",") if entry.strip()]


def as_number(text: str | None) -> int | None:
    """A whole number as Java reads one; None where the text is not one."""
    try:
        return None if text is None else int(text.strip())
    except ValueError:
        return None
