"""The settings of one broker or controller, from a file or from the node itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kafka_settings import SettingDefinition, SettingKind, definition, java_integer
from tieredctl.ops.cluster.release import Release
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.metadata_source import METADATA_TOPIC

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
REPLICA_SELECTOR = "replica.selector.class"
COPY_QUOTA = "remote.log.manager.copy.max.bytes.per.second"
FETCH_QUOTA = "remote.log.manager.fetch.max.bytes.per.second"
TOPIC_BASED = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
UNLIMITED = (1 << 63) - 1
FALLS_BACK = -1
"""What 3.9 shows for a thread pool with the size of the deprecated setting."""


METADATA_REPLICATION = "remote.log.metadata.topic.replication.factor"
METADATA_PARTITIONS = "remote.log.metadata.topic.num.partitions"
METADATA_RETENTION_MS = "remote.log.metadata.topic.retention.ms"
METADATA_MIN_ISR = "remote.log.metadata.topic.min.isr"
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
        setting = self.definition(name)
        return None if setting is None else setting.default

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
        if full in self.values:
            return as_number(self.values[full])
        setting = definition(SettingKind.METADATA_TOPIC, name, self.line)
        return None if setting is None else as_number(setting.default)

    @property
    def line(self) -> tuple[int, int] | None:
        return None if self.release is None else self.release.line

    def definition(self, name: str) -> SettingDefinition | None:
        """Kafka's definition of a setting in the release, or in the newest that has it; None where none has."""
        return definition(SettingKind.BROKER, name, self.line)

    def is_before(self, line: tuple[int, int]) -> bool | None:
        """Whether the release is older than a line of releases; None where unknown."""
        return None if self.release is None else self.release.line < line

    @property
    def copy_quota(self) -> int | None:
        """The bytes that this broker copies to remote storage in a second at most (KIP-956, since 3.8); None without a
        limit, or where it is hidden."""
        return self._quota(COPY_QUOTA)

    @property
    def fetch_quota(self) -> int | None:
        """The bytes that this broker reads from remote storage for consumers in a second at most; as `copy_quota`."""
        return self._quota(FETCH_QUOTA)

    def _quota(self, name: str) -> int | None:
        quota = self.number(name)
        return None if quota is None or quota == UNLIMITED or quota < 1 else quota

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
    return None if text is None else java_integer(text)


def demand_topic_based(class_names: Iterable[str]) -> None:
    """Raises TieredctlError `other-metadata-manager`, with its name, for a remote log metadata manager that does not
    keep its metadata in the topic: then what the topic lacks is neither missing nor orphaned."""
    for name in class_names:
        if name not in ("", TOPIC_BASED):
            message = (
                f"This cluster's {METADATA_CLASS} is {name}, which does not keep its metadata in {METADATA_TOPIC}."
            )
            raise TieredctlError(ErrorCode.OTHER_METADATA_MANAGER, message)


def managers_of(cluster: Cluster) -> list[str]:
    """The managers that the brokers of a live cluster name; none where the user may not ask."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError:
        return []
    classes = (settings.get(METADATA_CLASS) for settings in configs.values())
    return sorted({setting.value for setting in classes if setting is not None and setting.value})
