"""Unknown names of settings, which brokers silently ignore, and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice

from tieredctl.formats.kafka_settings import Line, SettingKind, is_in_line, java_integer, lines_of, setting_names
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SettingSubject, Subject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import INHERITED, TopicSettings
from tieredctl.ports.manager_settings import ManagerSettings, installed_managers, manager_of

_ALIKE = 0.9
"""How similar a misspelt name is to the right one: one or two of about thirty letters differ."""
_OF_TIERING = ("remote.", "log.remote.", "log.local.")
"""Kafka's settings under these prefixes belong to tiered storage."""
_PROPOSED = {
    "metadata.snapshot.min.changed_records.ratio": "KIP-630",
    "remote.wal.": "KIP-1176",
    "remote.log.wal.": "KIP-1176",
    "diskless.": "KIP-1164",
}
"""Settings that proposals have and no release, by what they begin with."""
_OF_FORKS = ("diskless.",)
"""Forks of Kafka have settings of their own under these prefixes."""
_CLIENTS = ("common.client", "producer", "consumer", "admin")
"""Prefixes of the metadata manager's clients: what follows is a client's setting, and is not checked."""
_WORDS_OF_TIERING = frozenset({"remote", "local"})
"""Without one of them a name may be any other setting, such as metadata.log.segment.bytes or request.timeout.ms."""
_TELLING_WORDS = 3
"""A shorter name is the end of too many others."""
_OF_NODES = (*_OF_TIERING, *_PROPOSED, "rlmm.config.", "rsm.config.", "listener.name.")
"""Prefixes under which a node may have settings that Kafka does not list."""
_MOST_MISSPELT = 1000
"""How many names are compared with the known ones where none of all is known."""


def has_any_setting(stated: Collection[str]) -> bool:
    """Whether any of these names may be meant for a node or a plugin of it, misspelt or not: else they are of a file of
    another kind."""
    valid_names = setting_names(SettingKind.BROKER) | setting_names(SettingKind.TOPIC)
    valid_names = valid_names.union(*(manager.names for manager in installed_managers()))
    if any(name in valid_names or name.startswith(_OF_NODES) for name in stated):
        return True
    return any(_meant(name, valid_names) is not None for name in islice(stated, _MOST_MISSPELT))


def unknown_names(settings: BrokerSettings) -> Iterator[Finding]:
    """Names in a node's settings that neither its release nor its managers have."""
    valid_names = _valid_names(settings)
    for name, stated in settings.values.items():
        if name in valid_names:
            yield from _unknown_to_the_release(settings, name)
        elif not name.startswith(_of_clients(settings)):
            yield from _unknown_name(settings, name, stated, valid_names)


def missing_in(kind: SettingKind, name: str, release: Release, since: Line | None = None) -> str | None:
    """Why a release lacks a setting that others have; None where it has it. `since` is a line before which it does
    nothing."""
    lines = lines_of(kind, name)
    if lines is None or (is_in_line(kind, name, release.line) and (since is None or release.line >= since)):
        return None
    first, last = since or lines[0], lines[1]
    came = release.line < first
    major, minor = first if came else last
    return f"which came with {major}.{minor}" if came else f"which {major}.{minor} was the last to have"


def _unknown_to_the_release(settings: BrokerSettings, name: str) -> Iterator[Finding]:
    kind, own = SettingKind.BROKER, name
    if name not in setting_names(kind):
        kind, own = SettingKind.METADATA_TOPIC, name.removeprefix(settings.metadata_name(""))
    missing = None if settings.release is None else missing_in(kind, own, settings.release)
    if missing is not None:
        message = f"Kafka {settings.release} ignores {name}, {missing}"
        yield Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, message, {"misspelt": name})


def _unknown_name(
    settings: BrokerSettings, name: str, stated: str | None, valid_names: frozenset[str]
) -> Iterator[Finding]:
    meant = _meant_of_manager(name, settings) or INHERITED.get(name) or _meant(name, valid_names)
    is_managers = name.startswith((settings.text(names.STORAGE_PREFIX) or " ", settings.metadata_name("") or " "))
    if meant is None and (unknown := _unknown_to_plugin(name, settings)) is not None:
        yield unknown
    elif meant is not None or (not is_managers and name.startswith((*_OF_TIERING, *_PROPOSED))):
        evidence: dict[str, object] = {"misspelt": name, "stated": stated, **_correction(name, meant, stated)}
        severity = Severity.INFO if meant is None and name.startswith(_OF_FORKS) else None
        message = _sentence(name, meant)
        yield Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, message, evidence, severity)


def _correction(name: str, meant: str | None, stated: str | None) -> dict[str, object]:
    """The name that was meant, and the value for it, which has its unit; no value where that is not known."""
    if meant is None:
        return {}
    value = None if stated is None else in_unit_of(meant, name, stated)
    return {"name": meant} if value is None else {"name": meant, "value": value}


def unknown_topic_names(settings: TopicSettings) -> Iterator[Finding]:
    """Names that are not topic settings: Kafka refuses them."""
    valid_names = setting_names(SettingKind.TOPIC)
    for name, stated in settings.values.items():
        if name not in valid_names:
            meant = _meant(name, valid_names)
            correction = _correction(name, meant, stated)
            value = correction.get("value")
            about = Subject() if meant is None else SettingSubject(meant, value if isinstance(value, str) else None)
            evidence: dict[str, object] = {"topic": settings.topic, "misspelt": name, "stated": stated, **correction}
            message = f"topics have no setting {name}" + ("" if meant is None else f"; {meant} is probably meant")
            code = FindingCode.TOPIC_CONFIG_NAME_UNKNOWN
            yield Finding(code, f"topic {settings.topic}", message, evidence, about=about)


def setting_name(finding: Finding) -> str | None:
    """The setting that a finding is about."""
    return finding.about.name if isinstance(finding.about, SettingSubject) else None


def _sentence(name: str, meant: str | None) -> str:
    if name in setting_names(SettingKind.TOPIC):
        whose = f"{name} is a topic setting: a broker ignores it"
    else:
        proposal = next((proposal for start, proposal in _PROPOSED.items() if name.startswith(start)), None)
        of = "" if proposal is None else f" (a proposal, {proposal}, has)"
        whose = f"Kafka has no setting {name}{of} and ignores it"
    return whose if meant is None else f"{whose}; {meant} is probably meant"


def _valid_names(settings: BrokerSettings) -> frozenset[str]:
    valid_names = setting_names(SettingKind.BROKER)
    if settings.uses_topic_based_metadata:
        valid_names |= {settings.metadata_name(name) for name in setting_names(SettingKind.METADATA_TOPIC)}
    return valid_names


def _of_clients(settings: BrokerSettings) -> tuple[str, ...]:
    """Prefixes of the settings of the metadata manager's clients."""
    return tuple(settings.metadata_name(f"remote.log.metadata.{client}.") for client in _CLIENTS)


def _meant(name: str, valid_names: Collection[str]) -> str | None:
    """The known name that was probably meant: it differs by a prefix, by the order of its words, or by a letter or
    two."""
    words = name.split(".")
    if len(words) >= _TELLING_WORDS and _WORDS_OF_TIERING.intersection(words):
        moved = [one for one in valid_names if one.endswith(f".{name}") or name.endswith(f".{one}")]
        ordered = moved or [one for one in valid_names if sorted(one.split(".")) == sorted(words)]
        if len(ordered) == 1:
            return ordered[0]
    return next(iter(get_close_matches(name, valid_names, 1, _ALIKE)), None)


def _meant_of_manager(name: str, settings: BrokerSettings) -> str | None:
    if name.startswith(tuple(f"remote.log.metadata.{client}." for client in _CLIENTS)):
        return settings.metadata_name(name)
    return _meant_by_plugin(name, settings)


def _manager(settings: BrokerSettings) -> ManagerSettings | None:
    return manager_of(settings.text(names.STORAGE_CLASS))


def _meant_by_plugin(name: str, settings: BrokerSettings) -> str | None:
    """The name that was meant, of a storage manager whose own settings and whose backend's lie under different
    prefixes."""
    manager = _manager(settings)
    if manager is None:
        return None
    prefix = settings.text(names.STORAGE_PREFIX) or ""
    if not name.startswith(prefix):
        first, _, rest = name.partition(".")
        bare = rest if first == prefix.partition(".")[0] else name
        is_own = bare in manager.names and not bare.startswith(manager.also_kafkas)
        return prefix + bare if is_own else None
    own = name.removeprefix(prefix)
    if own in manager.names:
        return None
    behind = own.removeprefix(manager.backend)
    if behind != own:
        return prefix + behind if behind in manager.names else None
    if own.startswith(manager.backends):
        return prefix + manager.backend + own
    ordered = [one for one in sorted(manager.names) if sorted(one.split(".")) == sorted(own.split("."))]
    longer = [one for one in sorted(manager.names, key=len, reverse=True) if own.endswith(f".{one}")]
    meant = next(iter([*ordered, *longer, *get_close_matches(own, manager.names, 1, _ALIKE)]), None)
    return None if meant is None else prefix + meant


def _unknown_to_plugin(name: str, settings: BrokerSettings) -> Finding | None:
    """The finding about a name that the storage manager has none like."""
    manager, prefix = _manager(settings), settings.text(names.STORAGE_PREFIX) or ""
    own = name.removeprefix(prefix)
    if manager is None or not name.startswith(prefix) or own in manager.names or own.startswith(manager.groups):
        return None
    plugin_names = sorted(manager.names)
    message = f"{manager.whose} is not known to have a setting {own}, and ignores what it does not have; "
    message += f"it has {', '.join(plugin_names)}"
    evidence: dict[str, object] = {"misspelt": name, "stated": settings.values[name], "known": plugin_names}
    return Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, message, evidence, Severity.INFO)


_SIZES = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES = {
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), 1),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("minute", "minutes"), 60_000),
    **dict.fromkeys(("hour", "hours"), 3_600_000),
    **dict.fromkeys(("day", "days"), 86_400_000),
}
_SCALES: tuple[Mapping[str, int], ...] = (_SIZES, _TIMES)


def in_unit_of(meant: str, name: str, stated: str) -> str | None:
    """A value that was stated under one name, as it is under the name that was meant; None where that cannot be told,
    because one of the names has a unit that the other does not have."""
    for scale in _SCALES:
        own, wanted = _unit(name, scale), _unit(meant, scale)
        if own == wanted:
            continue
        number = java_integer(stated)
        if own is None or wanted is None or number is None:
            return None
        whole, rest = divmod(number * own, wanted)
        return None if rest or number < 0 else str(whole)
    return stated


def _unit(name: str, scale: Mapping[str, int]) -> int | None:
    """What the last word of a name that is a unit is worth."""
    return next((scale[word] for word in reversed(name.lower().split(".")) if word in scale), None)
