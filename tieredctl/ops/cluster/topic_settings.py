"""The settings of one topic, as stated or as its cluster reports.

How long a leader waits before it copies a closed segment (KIP-1241, since 4.4).

As RemoteLogManager.RLMCopyTask.isEligibleForUpload decides it in 4.4.0: at once where one of the two lags is 0; else
once a segment's newest record is old enough, or enough newer bytes are on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kafka_settings import SettingKind, definition
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.broker_settings import BrokerSettings, as_number
from tieredctl.ops.cluster.release import Release
from tieredctl.ports.cluster import Cluster, ConfigValue, ListedOffset

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
        setting = definition(SettingKind.TOPIC, name, None if self.release is None else self.release.line)
        return "" if setting is None or setting.default is None else setting.default

    def is_true(self, name: str) -> bool:
        return self.text(name).strip().lower() == "true"

    @property
    def is_tiered(self) -> bool:
        return self.is_true(REMOTE_STORAGE_ENABLE)

    @property
    def local_retention_ms(self) -> int:
        """The local retention in ms, with -2 resolved; -1 is forever."""
        return effective_local(self.number(LOCAL_RETENTION_MS), self.number(RETENTION_MS))

    @property
    def local_retention_bytes(self) -> int:
        """The local retention in bytes, with -2 resolved; -1 is without limit."""
        return effective_local(self.number(LOCAL_RETENTION_BYTES), self.number(RETENTION_BYTES))


def topic_defaults(broker: BrokerSettings) -> Mapping[str, str]:
    """The settings that a topic inherits from its broker where it has none of its own."""
    stated = {name: broker.values.get(source) for name, source in _BROKER_SYNONYMS.items()}
    hours, milliseconds = as_number(broker.values.get("log.roll.hours")), broker.values.get("log.roll.ms")
    if milliseconds is not None or hours is not None:
        stated[SEGMENT_MS] = milliseconds or str((hours or 0) * 3_600_000)
    stated[RETENTION_MS] = str(broker.retention_ms)
    return {name: value for name, value in stated.items() if value is not None}


AS_LOCAL_RETENTION = -1


class CopyLag(NamedTuple):
    """A segment waits for one of these: its age in ms, or the bytes after it; -1 where that is not considered."""

    ms: int
    bytes: int

    @property
    def is_endless(self) -> bool:
        """Whether nothing is ever copied: both follow a local retention that is unlimited."""
        return self.ms < 0 and self.bytes < 0

    def waiting(self, pending_bytes: int, young_bytes: int) -> int:
        """How many of the uncopied bytes wait as they should; `young_bytes` are those younger than `ms`."""
        limits = [young_bytes] if self.ms > 0 else []
        limits += [self.bytes] if self.bytes > 0 else []
        return min([pending_bytes, *limits])


def copy_lag(settings: TopicSettings) -> CopyLag | None:
    """How long closed segments wait for their copy; None where they are copied at once."""
    ms, size = settings.number(COPY_LAG_MS), settings.number(COPY_LAG_BYTES)
    ms = settings.local_retention_ms if ms == AS_LOCAL_RETENTION else ms
    size = settings.local_retention_bytes if size == AS_LOCAL_RETENTION else size
    return None if 0 in (ms, size) else CopyLag(ms, size)


def offset_by_time(answer: ListedOffset, latest: int) -> int:
    """The first offset that is young enough: the end of the log where none is."""
    return latest if answer.offset is None else answer.offset


def copy_lag_faults(settings: TopicSettings) -> Iterator[tuple[str, str]]:
    """The names of the lags that Kafka refuses with this local retention, each with the reason
    (LogConfig.validateRemoteCopyLagTime)."""
    limits = (
        (COPY_LAG_MS, LOCAL_RETENTION_MS, settings.local_retention_ms),
        (COPY_LAG_BYTES, LOCAL_RETENTION_BYTES, settings.local_retention_bytes),
    )
    for name, local_name, local in limits:
        lag = settings.number(name)
        if 0 <= local < lag:
            yield name, f"{name} is {lag}, above {local_name}, which is effectively {local}"


UNLIMITED = -1
AS_TOTAL = -2


def local_retention_fault(local_name: str, local: int | None, total_name: str, total: int | None) -> str | None:
    """Why Kafka refuses a local retention (in ms or bytes) with a total one; None where it does not.

    Also None where one of the two is unknown.
    """
    if local is None or total is None or total == UNLIMITED or local == AS_TOTAL:
        return None
    if local == UNLIMITED:
        return f"{local_name} is unlimited, but {total_name} is {total}"
    if local > total:
        return f"{local_name} is {local}, above {total_name}, which is {total}"
    return None


def effective_local(local: int, total: int) -> int:
    """Local retention with -2 resolved; -1 is unlimited."""
    return total if local == AS_TOTAL else local


def outlives(data: int, metadata: int) -> bool:
    """Whether data kept for `data` ms may outlive its metadata, kept for `metadata` ms; -1 is forever.

    A segment's metadata is older than its deletion by more than its retention, so equal is too short.
    """
    return metadata != UNLIMITED and (data == UNLIMITED or data >= metadata)


_NAMED = 5


@dataclass(slots=True)
class ReadableSettings:
    """Settings by topic, and the topics whose settings the user may not see, each with the error."""

    settings: dict[str, Mapping[str, ConfigValue]] = field(default_factory=dict)
    denied: dict[str, TieredctlError] = field(default_factory=dict)


def readable_topic_configs(cluster: Cluster, names: Sequence[str]) -> ReadableSettings:
    """Asks for all at once, and for fewer where that is refused. Raises TieredctlError as the cluster does."""
    readable = ReadableSettings()
    left = [list(names)]
    while left:
        asked = left.pop()
        try:
            readable.settings |= cluster.topic_configs(asked)
        except TieredctlError as error:
            if error.code is not ErrorCode.BROKER_REFUSED:
                raise
            if len(asked) == 1:
                readable.denied[asked[0]] = error
            else:
                middle = len(asked) // 2
                left += [asked[middle:], asked[:middle]]
    return readable


def unreadable_settings(denied: Mapping[str, TieredctlError]) -> list[Finding]:
    """A finding for all forbidden topics: the picture of the cluster is incomplete. None where there are none."""
    if not denied:
        return []
    first = next(iter(denied.values()))
    named = ", ".join(sorted(denied)[:_NAMED])
    more = f" and {len(denied) - _NAMED} more" if len(denied) > _NAMED else ""
    topics = "topic" if len(denied) == 1 else "topics"
    evidence: dict[str, object] = {"topics": sorted(denied)}
    return [
        Finding(
            FindingCode.CHECK_NOT_MADE, f"settings of {topics} {named}{more}", f"{first.message} {first.hint}", evidence
        )
    ]
