"""The settings of one topic, as stated or as its cluster reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tieredctl.formats.kafka_settings import SettingKind, definition
from tieredctl.ops.cluster.broker_settings import BrokerSettings, as_number
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.retention import effective_local

REMOTE_STORAGE_ENABLE = "remote.storage.enable"
COPY_DISABLE = "remote.log.copy.disable"
DELETE_ON_DISABLE = "remote.log.delete.on.disable"
RETENTION_MS, RETENTION_BYTES = "retention.ms", "retention.bytes"
LOCAL_RETENTION_MS, LOCAL_RETENTION_BYTES = "local.retention.ms", "local.retention.bytes"
SEGMENT_MS, SEGMENT_BYTES = "segment.ms", "segment.bytes"
COPY_LAG_MS, COPY_LAG_BYTES = "remote.copy.lag.ms", "remote.copy.lag.bytes"
CLEANUP_POLICY = "cleanup.policy"

_BROKER_SYNONYMS = {
    RETENTION_BYTES: "log.retention.bytes",
    LOCAL_RETENTION_MS: "log.local.retention.ms",
    LOCAL_RETENTION_BYTES: "log.local.retention.bytes",
    SEGMENT_BYTES: "log.segment.bytes",
    COPY_LAG_MS: "log.remote.copy.lag.ms",
    COPY_LAG_BYTES: "log.remote.copy.lag.bytes",
    CLEANUP_POLICY: "log.cleanup.policy",
}
INHERITED = {**_BROKER_SYNONYMS, RETENTION_MS: "log.retention.ms", SEGMENT_MS: "log.roll.ms"}
"""What a topic inherits from its broker, and the broker setting that precedes all others there."""


class SettingUnknownError(LookupError):
    """A setting is inherited from where nobody looked: what follows from it is unknown."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The stated values, and Kafka's defaults for the rest. `None` is a value that is not known."""

    topic: str
    values: Mapping[str, str | None]
    release: Release | None = None

    def text(self, name: str) -> str:
        """The value, or its default. Raises SettingUnknownError, and so does all that follows from it."""
        stated = self.values[name] if name in self.values else self._default(name)
        if stated is None:
            raise SettingUnknownError(name)
        return stated

    def is_known(self, *names: str) -> bool:
        """Whether all of these have a value or a default."""
        return all(self.values.get(name, "") is not None for name in names)

    def number(self, name: str) -> int:
        """The value, or its default where it is not a number."""
        number = as_number(self.text(name))
        return int(self._default(name)) if number is None else number

    def _default(self, name: str) -> str:
        found = definition(SettingKind.TOPIC, name, None if self.release is None else self.release.line)
        return "" if found is None or found.default is None else found.default

    def is_true(self, name: str) -> bool:
        return self.text(name).strip().lower() == "true"

    @property
    def is_tiered(self) -> bool:
        return self.is_true(REMOTE_STORAGE_ENABLE)

    @property
    def local_retention_ms(self) -> int:
        """With -2 resolved; -1 is forever."""
        return effective_local(self.number(LOCAL_RETENTION_MS), self.number(RETENTION_MS))

    @property
    def local_retention_bytes(self) -> int:
        """With -2 resolved; -1 is without limit."""
        return effective_local(self.number(LOCAL_RETENTION_BYTES), self.number(RETENTION_BYTES))


def topic_defaults(broker: BrokerSettings) -> Mapping[str, str]:
    """The settings that a topic inherits from its broker where it has none of its own."""
    stated = {name: broker.values.get(source) for name, source in _BROKER_SYNONYMS.items()}
    hours, milliseconds = as_number(broker.values.get("log.roll.hours")), broker.values.get("log.roll.ms")
    if milliseconds is not None or hours is not None:
        stated[SEGMENT_MS] = milliseconds or str((hours or 0) * 3_600_000)
    stated[RETENTION_MS] = str(broker.retention_ms)
    return {name: value for name, value in stated.items() if value is not None}
