"""Unknown names of settings, which brokers silently ignore, and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SettingSubject, Subject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import BROKER_SETTINGS, METADATA_TOPIC_SETTINGS, BrokerSettings
from tieredctl.ops.cluster.topic_settings import TOPIC_SETTINGS, TopicSettings

_ALIKE = 0.9
"""How similar a misspelt name is to the right one: one or two of about thirty letters differ."""
_OF_TIERING = ("remote.", "log.remote.", "log.local.")
"""Kafka's settings under these prefixes belong to tiered storage."""
_UNJUDGED = frozenset(
    {
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "remote.log.metadata.manager.class.path",
        "remote.log.storage.manager.class.path",
    }
)
"""Further settings of RemoteLogManagerConfig, which no rule judges."""
_SINCE_4_4 = (names.COPY_LAG_MS, names.COPY_LAG_BYTES)
_CLIENTS = ("common.client", "producer", "consumer", "admin")
"""Prefixes of the metadata manager's clients: what follows is a client's setting, and is not checked."""
_WORDS_OF_TIERING = frozenset({"remote", "local"})
"""Without one of them a name may be any other setting, such as metadata.log.segment.bytes or request.timeout.ms."""
_TELLING_WORDS = 3
"""A shorter name is the end of too many others."""
_AIVEN = "io.aiven.kafka.tieredstorage."
_AIVEN_BACKEND = "storage."
_AIVEN_SETTINGS = frozenset(
    {
        "chunk.size",
        "compression.enabled",
        "compression.heuristic.enabled",
        "custom.metadata.fields.include",
        "encryption.enabled",
        "encryption.key.pair.id",
        "encryption.key.pairs",
        "fetch.chunk.cache.class",
        "key.prefix",
        "key.prefix.mask",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "segment.format",
        "storage.backend.class",
        "upload.rate.limit.bytes.per.second",
    }
)
"""Settings of its RemoteStorageManagerConfig (docs/configs.rst) that stand alone."""
_AIVEN_BACKENDS = ("s3.", "aws.", "gcs.", "azure.", "oci.")
_AIVEN_GROUPS = (
    _AIVEN_BACKEND,
    "encryption.key.pairs.",
    "fetch.",
    "segment.",
    "metrics.",
    "upload.",
    "custom.metadata.",
)
"""Prefixes of the settings of its backends, key pairs and caches, which differ between its releases."""
_KAFKAS_TOO = "metrics."
"""Aiven's settings that brokers have under the same names."""


def unknown_names(settings: BrokerSettings) -> Iterator[Finding]:
    """Names in a node's settings that neither a known release nor the node's managers have."""
    known = _known(settings)
    for name in _SINCE_4_4:
        if name in settings.values and settings.is_before((4, 4)):
            message = f"Kafka {settings.release} ignores {name}, which came with 4.4"
            yield Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, message, {"misspelt": name})
    for name, stated in settings.values.items():
        if name in known or name.startswith(_of_clients(settings)):
            continue
        meant = _meant_of_manager(name, settings) or _meant(name, known)
        is_managers = name.startswith((settings.text(names.STORAGE_PREFIX) or " ", settings.metadata_name("") or " "))
        if meant is None and (own := _unknown_to_plugin(name, settings)) is not None:
            yield _not_of_the_plugin(settings, name, own)
        elif meant is None and (is_managers or not name.startswith(_OF_TIERING)):
            continue
        else:
            evidence: dict[str, object] = {"misspelt": name, "stated": stated}
            if meant is not None:
                evidence |= {"name": meant} | ({} if stated is None else {"value": stated})
            yield Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, _said(name, meant), evidence)


def unknown_topic_names(settings: TopicSettings) -> Iterator[Finding]:
    """Names that are not topic settings: Kafka refuses them."""
    for name, stated in settings.values.items():
        if name not in TOPIC_SETTINGS:
            meant = _meant(name, TOPIC_SETTINGS)
            about = Subject() if meant is None else SettingSubject(meant, stated)
            evidence: dict[str, object] = {"topic": settings.topic, "misspelt": name, "stated": stated}
            if meant is not None:
                evidence |= {"name": meant, "value": stated}
            message = f"topics have no setting {name}" + ("" if meant is None else f"; {meant} is probably meant")
            code = FindingCode.TOPIC_CONFIG_NAME_UNKNOWN
            yield Finding(code, f"topic {settings.topic}", message, evidence, about=about)


def setting_name(finding: Finding) -> str | None:
    """The setting that a finding is about."""
    return finding.about.name if isinstance(finding.about, SettingSubject) else None


def _said(name: str, meant: str | None) -> str:
    if name in TOPIC_SETTINGS:
        whose = f"{name} is a topic setting: a broker ignores it"
    else:
        whose = f"Kafka has no setting {name} and ignores it"
    return whose if meant is None else f"{whose}; {meant} is probably meant"


def _known(settings: BrokerSettings) -> frozenset[str]:
    known = BROKER_SETTINGS.keys() | _UNJUDGED
    if settings.uses_topic_based_metadata:
        known |= {settings.metadata_name(name) for name in METADATA_TOPIC_SETTINGS}
    return frozenset(known)


def _of_clients(settings: BrokerSettings) -> tuple[str, ...]:
    """Prefixes of the settings of the metadata manager's clients."""
    return tuple(settings.metadata_name(f"remote.log.metadata.{client}.") for client in _CLIENTS)


def _meant(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant: it differs by a prefix, by the order of its words, or by a letter or
    two."""
    words = name.split(".")
    if len(words) >= _TELLING_WORDS and _WORDS_OF_TIERING.intersection(words):
        moved = [one for one in known if one.endswith(f".{name}") or name.endswith(f".{one}")]
        ordered = moved or [one for one in known if sorted(one.split(".")) == sorted(words)]
        if len(ordered) == 1:
            return ordered[0]
    return next(iter(get_close_matches(name, known, 1, _ALIKE)), None)


def _meant_of_manager(name: str, settings: BrokerSettings) -> str | None:
    if name.startswith(tuple(f"remote.log.metadata.{client}." for client in _CLIENTS)):
        return settings.metadata_name(name)
    return _meant_by_plugin(name, settings)


def _is_aivens(settings: BrokerSettings) -> bool:
    return (settings.text(names.STORAGE_CLASS) or "").startswith(_AIVEN)


def _meant_by_plugin(name: str, settings: BrokerSettings) -> str | None:
    """Of Aiven's plugin, whose own settings and whose backend's lie under different prefixes."""
    if not _is_aivens(settings):
        return None
    prefix = settings.text(names.STORAGE_PREFIX) or ""
    if not name.startswith(prefix):
        first, _, rest = name.partition(".")
        bare = rest if first == prefix.partition(".")[0] else name
        is_own = bare in _AIVEN_SETTINGS and not bare.startswith(_KAFKAS_TOO)
        return prefix + bare if is_own else None
    own = name.removeprefix(prefix)
    if own in _AIVEN_SETTINGS:
        return None
    behind = own.removeprefix(_AIVEN_BACKEND)
    if behind != own:
        return prefix + behind if behind in _AIVEN_SETTINGS else None
    if own.startswith(_AIVEN_BACKENDS):
        return prefix + _AIVEN_BACKEND + own
    ordered = [one for one in sorted(_AIVEN_SETTINGS) if sorted(one.split(".")) == sorted(own.split("."))]
    longer = [one for one in sorted(_AIVEN_SETTINGS, key=len, reverse=True) if own.endswith(f".{one}")]
    meant = next(iter([*ordered, *longer, *get_close_matches(own, _AIVEN_SETTINGS, 1, _ALIKE)]), None)
    return None if meant is None else prefix + meant


def _unknown_to_plugin(name: str, settings: BrokerSettings) -> str | None:
    """The name without the prefix, if Aiven's plugin has none like it."""
    prefix = settings.text(names.STORAGE_PREFIX) or ""
    own = name.removeprefix(prefix)
    is_unknown = own not in _AIVEN_SETTINGS and not own.startswith(_AIVEN_GROUPS)
    return own if _is_aivens(settings) and name.startswith(prefix) and is_unknown else None


def _not_of_the_plugin(settings: BrokerSettings, name: str, own: str) -> Finding:
    known = sorted(_AIVEN_SETTINGS)
    message = f"Aiven's plugin is not known to have a setting {own}, and ignores what it does not have; "
    message += f"it has {', '.join(known)}"
    evidence: dict[str, object] = {"misspelt": name, "stated": settings.values[name], "known": known}
    return Finding(FindingCode.BROKER_CONFIG_NAME_UNKNOWN, settings.subject, message, evidence, Severity.INFO)
