"""Wrong or unwise settings of one broker or controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tieredctl.formats.kafka_settings import SettingDefinition, SettingKind, definition, is_allowed
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SettingSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.nearest import nearest_value
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import (
    BrokerSettings,
)
from tieredctl.ops.cluster.topic_settings import UNLIMITED, local_retention_fault, outlives
from tieredctl.ops.doctor.setting_names import setting_name, unknown_names
from tieredctl.process.redaction import is_secret

WISE_REPLICATION = 3
DEFAULT_MIN_ISR_SINCE_4_3 = 2
_INHERITS_SIZE = (names.COPIER_POOL, names.EXPIRATION_POOL)
_POOLS = (names.COPIER_POOL, names.EXPIRATION_POOL, names.READER_THREADS)
_INDEXES_A_SEGMENT = 2
"""The offset index and the time index, of at most log.index.size.max.bytes each."""

Rule = Callable[[BrokerSettings], Iterator[Finding]]


def broker_findings(settings: BrokerSettings) -> list[Finding]:
    """All findings that follow from a node's settings alone. A value that Kafka refuses gets one finding, with the
    value that the other rules ask for."""
    invalid = dict(_invalid_values(settings))
    usual = {name: _likely(settings.values[name], setting) for name, setting in invalid.items()}
    mended = replace(settings, values={**settings.values, **usual})
    findings = _judged(mended)
    wanted = usual | {one.about.name: one.about.wanted for one in findings if isinstance(one.about, SettingSubject)}
    kept = [one for one in findings if setting_name(one) not in invalid]
    refused = (_invalid_value(settings, name, setting, wanted[name]) for name, setting in invalid.items())
    return [*refused, *unknown_names(settings), *kept]


def _judged(settings: BrokerSettings) -> list[Finding]:
    """The findings by all rules except those that check whether values are valid."""
    if not settings.is_true(names.SYSTEM_ENABLE):
        return [tiering_off(settings)]
    rules = () if settings.is_only_controller else BROKER_RULES
    return [finding for rule in rules for finding in rule(settings)]


def tiering_off(settings: BrokerSettings, severity: Severity | None = None) -> Finding:
    """The finding for a node whose remote.log.storage.system.enable is not true."""
    message = "tiered storage is off; enable it on every broker and controller before any topic is tiered"
    return _finding(FindingCode.BROKER_CONFIG_TIERING_OFF, settings, names.SYSTEM_ENABLE, "true", message, severity)


def _invalid_values(settings: BrokerSettings) -> Iterator[tuple[str, SettingDefinition]]:
    """The stated settings whose values Kafka refuses, each with its definition."""
    for name, stated in settings.values.items():
        kind, own = _kind_of(settings, name)
        setting = definition(kind, own, settings.line)
        if stated is not None and setting is not None and not is_allowed(kind, own, stated, settings.line):
            yield name, setting


def _kind_of(settings: BrokerSettings, name: str) -> tuple[SettingKind, str]:
    """The kind of a setting, and its name there."""
    prefix = settings.metadata_name("")
    if settings.uses_topic_based_metadata and name.startswith(prefix):
        return SettingKind.METADATA_TOPIC, name.removeprefix(prefix)
    return SettingKind.BROKER, name


def _invalid_value(settings: BrokerSettings, name: str, setting: SettingDefinition, wanted: object) -> Finding:
    shown = "its value" if is_secret(name) else f"{name}={settings.values[name]}"
    message = f"{shown} is not {setting.demand}"
    return _finding(FindingCode.BROKER_CONFIG_VALUE_INVALID, settings, name, wanted, message)


def _likely(stated: str | None, setting: SettingDefinition) -> str | None:
    """What a value that Kafka refuses was probably meant to be; else the default."""
    return nearest_value((stated or "").strip(), setting.choices) or setting.default


def _managers(settings: BrokerSettings) -> Iterator[Finding]:
    if not settings.text(names.STORAGE_CLASS):
        yield _missing(
            settings, names.STORAGE_CLASS, "no remote storage manager class is set: the broker does not start"
        )
    servers = settings.metadata_name("remote.log.metadata.common.client.bootstrap.servers")
    listener = settings.text(names.METADATA_LISTENER)
    if not settings.uses_topic_based_metadata:
        return
    if not listener and servers not in settings.values:
        yield _missing(
            settings,
            names.METADATA_LISTENER,
            "no listener is set by which the metadata manager reaches the metadata topic",
        )
    elif listener and settings.listener_names and listener not in settings.listener_names:
        listeners = ", ".join(settings.listener_names)
        yield _missing(settings, names.METADATA_LISTENER, f"{listener} is not one of the listeners ({listeners})")


def _missing(settings: BrokerSettings, name: str, message: str) -> Finding:
    return _finding(FindingCode.BROKER_CONFIG_MANAGER_MISSING, settings, name, None, message)


def _local_retention(settings: BrokerSettings) -> Iterator[Finding]:
    limits = (
        ("log.local.retention.ms", settings.retention_ms, "log.retention.ms"),
        ("log.local.retention.bytes", settings.number("log.retention.bytes"), "log.retention.bytes"),
    )
    for name, total, total_name in limits:
        fault = local_retention_fault(name, settings.number(name), total_name, total)
        if fault:
            yield _finding(FindingCode.BROKER_CONFIG_LOCAL_RETENTION, settings, name, "-2", fault)


def _log_dirs(settings: BrokerSettings) -> Iterator[Finding]:
    if len(settings.log_dirs) > 1 and settings.is_before((3, 8)) is not False:
        certain = settings.release is not None
        message = f"{len(settings.log_dirs)} log directories: before 3.8, tiered storage needs a single one"
        severity = None if certain else Severity.WARNING
        code, first = FindingCode.BROKER_CONFIG_SEVERAL_LOG_DIRS, settings.log_dirs[0]
        yield _finding(code, settings, "log.dirs", first, message, severity)


def _metadata_replication(settings: BrokerSettings) -> Iterator[Finding]:
    replicas = settings.metadata_number(names.METADATA_REPLICATION)
    if replicas is not None and replicas < WISE_REPLICATION:
        wise = f"{replicas} of {WISE_REPLICATION} replicas"
        message = f"the metadata topic would have {wise}: segments whose metadata is lost can no longer be read"
        name = settings.metadata_name(names.METADATA_REPLICATION)
        yield _finding(FindingCode.BROKER_CONFIG_METADATA_REPLICATION, settings, name, WISE_REPLICATION, message)


def _metadata_min_isr(settings: BrokerSettings) -> Iterator[Finding]:
    replicas = settings.metadata_number(names.METADATA_REPLICATION)
    if replicas is None or replicas < WISE_REPLICATION:
        return  # with so few replicas no min ISR is durable
    own = settings.metadata_name(names.METADATA_MIN_ISR)
    if settings.is_hidden(own):
        return
    if settings.is_before((4, 3)) is False:
        stated = settings.metadata_number(names.METADATA_MIN_ISR)
        name, why = own, ""
        min_isr = DEFAULT_MIN_ISR_SINCE_4_3 if stated is None else stated
    else:
        name, inherited = "min.insync.replicas", settings.number("min.insync.replicas")
        min_isr = 1 if inherited is None else inherited
        why = ", which the metadata topic inherits before 4.3"
    if fault := min_isr_fault(min_isr, replicas):
        message = f"{name} is {min_isr}{why}: {fault}"
        yield _finding(FindingCode.BROKER_CONFIG_METADATA_MIN_ISR, settings, name, replicas - 1, message)


def _metadata_retention(settings: BrokerSettings) -> Iterator[Finding]:
    yield from metadata_retention(settings, [("topics by default", settings.retention_ms)])


def metadata_retention(settings: BrokerSettings, kept: Iterable[tuple[str, int | None]]) -> Iterator[Finding]:
    """The metadata topic's retention against some topics' retention.ms (each with the topic's name)."""
    stated = settings.metadata_number(names.METADATA_RETENTION_MS)
    fault = None if stated is None else retention_fault(stated, kept)
    if fault:
        name = settings.metadata_name(names.METADATA_RETENTION_MS)
        yield _finding(FindingCode.BROKER_CONFIG_METADATA_RETENTION, settings, name, -1, fault)


def _copy_quota(settings: BrokerSettings) -> Iterator[Finding]:
    yield from _quota(settings, names.COPY_QUOTA, FindingCode.BROKER_CONFIG_COPY_QUOTA, "copies to remote storage")


def _fetch_quota(settings: BrokerSettings) -> Iterator[Finding]:
    yield from _quota(settings, names.FETCH_QUOTA, FindingCode.BROKER_CONFIG_FETCH_QUOTA, "fetches from remote storage")


def _quota(settings: BrokerSettings, name: str, code: FindingCode, what: str) -> Iterator[Finding]:
    if settings.is_before((3, 8)):
        return  # quotas came with 3.8
    if settings.number(name) == names.UNLIMITED:
        yield _finding(code, settings, name, None, f"{what} have no limit ({name})")


def _thread_pools(settings: BrokerSettings) -> Iterator[Finding]:
    if settings.is_before((4, 2)) is False and names.THREAD_POOL in settings.values:
        shared = settings.number(names.THREAD_POOL)
        follower = settings.number(names.FOLLOWER_POOL)
        if shared is not None and shared != follower:
            message = f"{names.THREAD_POOL}={shared} is deprecated since 4.2, and sizes only the follower pool"
            yield _finding(FindingCode.BROKER_CONFIG_THREAD_POOL, settings, names.FOLLOWER_POOL, shared, message)
    for name in _POOLS:
        size, usual = _pool_size(settings, name), _pool_size(replace(settings, values={}), name)
        if size is not None and usual is not None and 0 < size < usual:
            message = f"{name} is {size}, below Kafka's default of {usual}"
            yield _finding(FindingCode.BROKER_CONFIG_THREAD_POOL, settings, name, usual, message)


def _pool_size(settings: BrokerSettings, name: str) -> int | None:
    size = settings.number(name)
    if name in _INHERITS_SIZE and size == names.FALLS_BACK:
        return settings.number(names.THREAD_POOL)
    return size


def _index_cache(settings: BrokerSettings) -> Iterator[Finding]:
    readers, largest = settings.number(names.READER_THREADS), settings.number("log.index.size.max.bytes")
    cache = settings.number(names.INDEX_CACHE_BYTES)
    if cache is None or readers is None or largest is None:
        return
    needed = readers * _INDEXES_A_SEGMENT * largest
    if cache < needed:
        message = f"{cache} bytes are less than {needed}, the indexes that {readers} reader threads may use at once"
        yield _finding(FindingCode.BROKER_CONFIG_INDEX_CACHE, settings, names.INDEX_CACHE_BYTES, needed, message)


def _finding(
    code: FindingCode,
    settings: BrokerSettings,
    name: str,
    wanted: object,
    message: str,
    severity: Severity | None = None,
) -> Finding:
    """`value` is what the remedy sets; `stated` is the current value, null where it is a default or hidden."""
    value = None if wanted is None else str(wanted)
    evidence: dict[str, object] = {"name": name, "stated": settings.values.get(name)}
    if value is not None:
        evidence["value"] = value
    return Finding(code, settings.subject, message, evidence, severity, SettingSubject(name, value))


BROKER_RULES: tuple[Rule, ...] = (
    _managers,
    _local_retention,
    _log_dirs,
    _metadata_replication,
    _metadata_min_isr,
    _metadata_retention,
    _copy_quota,
    _fetch_quota,
    _thread_pools,
    _index_cache,
)


def min_isr_fault(min_isr: int, replicas: int) -> str | None:
    """Why a min ISR is unwise for this number of replicas (more than one); None where it is not."""
    if min_isr < 2:
        return "an event counts as written once a single broker has it"
    if min_isr >= replicas:
        return f"with {replicas} replicas, tiering stops when one broker is down"
    return None


def retention_fault(metadata_retention_ms: int, kept: Iterable[tuple[str, int | None]]) -> str | None:
    """Why the metadata's retention is too short for the topics' retention (ms, each with the topic's name).

    A topic whose retention is unknown is ignored.
    """
    outliving = [(whose, ms) for whose, ms in kept if ms is not None and outlives(ms, metadata_retention_ms)]
    if not outliving:
        return None
    whose, longest = max(outliving, key=lambda one: float("inf") if one[1] == UNLIMITED else one[1])
    spelled = "forever" if longest == UNLIMITED else f"for {longest} ms"
    return f"metadata is deleted after {metadata_retention_ms} ms, but data is kept {spelled} ({whose})"
