"""Wrong or unwise settings of one tiered topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from tieredctl.formats.kafka_settings import SettingKind, definition, is_allowed
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SettingSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.topic_settings import (
    AS_LOCAL_RETENTION,
    AS_TOTAL,
    SettingUnknownError,
    TopicSettings,
    copy_lag,
    copy_lag_faults,
    local_retention_fault,
)
from tieredctl.ops.doctor.setting_names import missing_in, setting_name, unknown_topic_names

SMALL_SEGMENT_BYTES = 16 << 20
SMALL_SEGMENT_MS = 10 * 60_000
"""Below these a segment is called small. They are tieredctl's judgement; Kafka has no such limit."""

_SINCE_3_6 = (names.REMOTE_STORAGE_ENABLE, names.LOCAL_RETENTION_MS, names.LOCAL_RETENTION_BYTES)

Rule = Callable[[TopicSettings], Iterator[Finding]]


def topic_findings(settings: TopicSettings) -> list[Finding]:
    """All findings that follow from a topic's settings alone; if it is not tiered, only invalid values."""
    findings = [*_invalid_values(settings), *unknown_topic_names(settings)]
    refused = set(map(setting_name, findings))
    if settings.is_tiered:
        judged = [finding for rule in TIERED_RULES for finding in _as_far_as_known(rule, settings)]
        findings += [one for one in judged if setting_name(one) not in refused]
    return findings


def _as_far_as_known(rule: Rule, settings: TopicSettings) -> Iterator[Finding]:
    """What a rule finds before it needs a setting that is not known."""
    with suppress(SettingUnknownError):
        yield from rule(settings)


def _invalid_values(settings: TopicSettings) -> Iterator[Finding]:
    line = None if settings.release is None else settings.release.line
    for name, stated in settings.values.items():
        setting = definition(SettingKind.TOPIC, name, line)
        if stated is not None and setting is not None and not is_allowed(SettingKind.TOPIC, name, stated, line):
            message = f"{name} is {stated!r}, not {setting.demand}"
            yield _finding(FindingCode.TOPIC_CONFIG_VALUE_INVALID, settings, name, message)


def _unknown_to_the_release(settings: TopicSettings) -> Iterator[Finding]:
    if settings.release is None:
        return
    for name, stated in settings.values.items():
        since = (3, 6) if name in _SINCE_3_6 else None
        if stated is not None and (missing := missing_in(SettingKind.TOPIC, name, settings.release, since)):
            message = f"Kafka {settings.release} does not know {name}, {missing}"
            yield _finding(FindingCode.TOPIC_CONFIG_RELEASE, settings, name, message)


def _cleanup_policy(settings: TopicSettings) -> Iterator[Finding]:
    stated = settings.text(names.CLEANUP_POLICY)
    # An empty one, which deletes nothing, is accepted too: by 3.9.1 already, though 4.2 is documented as the first.
    if {one.strip() for one in stated.split(",")} - {"delete", ""}:
        message = f"{names.CLEANUP_POLICY} is {stated}; a tiered topic needs delete"
        yield _finding(FindingCode.TOPIC_CONFIG_CLEANUP_POLICY, settings, names.CLEANUP_POLICY, message, "delete")


def _local_retention(settings: TopicSettings) -> Iterator[Finding]:
    for local, total in _LIMITS:
        if not settings.is_known(local, total):
            continue
        fault = local_retention_fault(local, settings.number(local), total, settings.number(total))
        if fault:
            yield _finding(FindingCode.TOPIC_CONFIG_LOCAL_RETENTION, settings, local, fault, str(AS_TOTAL))


def _copy_disable(settings: TopicSettings) -> Iterator[Finding]:
    if not settings.is_true(names.COPY_DISABLE):
        return
    for local, total in _LIMITS:
        if settings.is_known(local, total) and settings.number(local) not in (AS_TOTAL, settings.number(total)):
            message = f"{names.COPY_DISABLE} is true, so {local} must be -2 or equal to {total}"
            yield _finding(FindingCode.TOPIC_CONFIG_COPY_DISABLE, settings, local, message, str(AS_TOTAL))


def _copy_lag(settings: TopicSettings) -> Iterator[Finding]:
    for name, fault in copy_lag_faults(settings):
        yield _finding(FindingCode.TOPIC_CONFIG_COPY_LAG, settings, name, fault, str(AS_LOCAL_RETENTION))
    lag = copy_lag(settings)
    if lag is not None and lag.is_endless:
        lags = f"{names.COPY_LAG_MS} and {names.COPY_LAG_BYTES}"
        message = f"{lags} follow local retention, which is unlimited: nothing is ever copied"
        yield _finding(FindingCode.TOPIC_CONFIG_COPY_LAG, settings, names.COPY_LAG_MS, message, "0")


def _small_segments(settings: TopicSettings) -> Iterator[Finding]:
    size = settings.number(names.SEGMENT_BYTES) if settings.is_known(names.SEGMENT_BYTES) else 0
    time = settings.number(names.SEGMENT_MS) if settings.is_known(names.SEGMENT_MS) else 0
    if 0 < size < SMALL_SEGMENT_BYTES:
        message = f"{names.SEGMENT_BYTES} is {size}"
        yield _finding(FindingCode.TOPIC_CONFIG_SMALL_SEGMENTS, settings, names.SEGMENT_BYTES, message, str(1 << 30))
    if 0 < time < SMALL_SEGMENT_MS:
        message = f"{names.SEGMENT_MS} is {time}"
        yield _finding(FindingCode.TOPIC_CONFIG_SMALL_SEGMENTS, settings, names.SEGMENT_MS, message, "604800000")
    elif 0 <= (local := settings.local_retention_ms) < SMALL_SEGMENT_MS:
        message = f"local retention closes segments after {local} ms"
        yield _finding(FindingCode.TOPIC_CONFIG_SMALL_SEGMENTS, settings, names.LOCAL_RETENTION_MS, message, "86400000")


def _segment_exceeds_local_retention(settings: TopicSettings) -> Iterator[Finding]:
    yield from _as_far_as_known(_segment_exceeds_local_bytes, settings)
    time, local_time = settings.number(names.SEGMENT_MS), settings.local_retention_ms
    if SMALL_SEGMENT_MS <= local_time < time:
        message = f"{names.SEGMENT_MS} is {time}, but local retention closes a segment after {local_time} ms"
        code = FindingCode.TOPIC_CONFIG_SEGMENT_EXCEEDS_LOCAL_RETENTION
        yield _finding(code, settings, names.SEGMENT_MS, message, str(max(local_time, 1)))


def _segment_exceeds_local_bytes(settings: TopicSettings) -> Iterator[Finding]:
    size, local_size = settings.number(names.SEGMENT_BYTES), settings.local_retention_bytes
    if 0 <= local_size < size:
        message = f"local retention is {local_size} bytes, but segments are deleted whole, and one may have {size}"
        code = FindingCode.TOPIC_CONFIG_SEGMENT_EXCEEDS_LOCAL_RETENTION
        yield _finding(code, settings, names.LOCAL_RETENTION_BYTES, message, str(size))


def _kept_twice(settings: TopicSettings) -> Iterator[Finding]:
    if settings.is_true(names.COPY_DISABLE) or copy_lag(settings) is not None:
        return
    if all(settings.number(local) in (AS_TOTAL, settings.number(total)) for local, total in _LIMITS):
        message = (
            "neither local.retention.ms nor local.retention.bytes is below total retention: no local disk is freed"
        )
        yield _finding(FindingCode.TOPIC_CONFIG_KEPT_TWICE, settings, names.LOCAL_RETENTION_MS, message, "86400000")


def _finding(code: FindingCode, settings: TopicSettings, name: str, message: str, wanted: str | None = None) -> Finding:
    """`value` is what the remedy sets; `stated` is the value of the topic or its defaults."""
    evidence: dict[str, object] = {"topic": settings.topic, "name": name, "stated": settings.text(name)}
    if wanted is not None:
        evidence["value"] = wanted
    return Finding(code, f"topic {settings.topic}", message, evidence, about=SettingSubject(name, wanted))


_LIMITS = (
    (names.LOCAL_RETENTION_MS, names.RETENTION_MS),
    (names.LOCAL_RETENTION_BYTES, names.RETENTION_BYTES),
)
TIERED_RULES: tuple[Rule, ...] = (
    _unknown_to_the_release,
    _cleanup_policy,
    _local_retention,
    _copy_disable,
    _copy_lag,
    _small_segments,
    _segment_exceeds_local_retention,
    _kept_twice,
)
