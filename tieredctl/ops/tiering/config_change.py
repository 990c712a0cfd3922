"""A change of a topic's settings: before, after, and the one request that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import (
    COPY_DISABLE,
    DELETE_ON_DISABLE,
    REMOTE_STORAGE_ENABLE,
    TopicSettings,
)
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.topic_status import SETTINGS
from tieredctl.ports.cluster import Cluster, ConfigValue, TopicDescription, settings_of

_OWN = "DYNAMIC_TOPIC_CONFIG"
_SYSTEM_OFF = "Tiered Storage functionality is disabled in the broker"
_BY_THE_CONTROLLER = (
    "The active controller decides this: set remote.log.storage.system.enable=true on controllers, too."
)
_UNSET = ConfigValue(None, "UNKNOWN")
_DEFAULTS = {COPY_DISABLE: "false", DELETE_ON_DISABLE: "false"}
"""Settings that a change may remove: brokers have no default of their own for them."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A topic's settings before and after. `changes` has what is set; None removes the topic's own value."""

    topic: TopicDescription
    before: Mapping[str, ConfigValue]
    changes: Mapping[str, str | None]

    @property
    def is_empty(self) -> bool:
        return not self.changes

    def after(self) -> dict[str, str | None]:
        """All settings after the change."""
        values = {name: one.value for name, one in self.before.items()}
        return values | {name: _DEFAULTS.get(name) if to is None else to for name, to in self.changes.items()}

    def settings_after(self, release: Release | None) -> TopicSettings:
        """The same, for the rules."""
        return TopicSettings(self.topic.topic, self.after(), release)

    def document(self) -> Document:
        """The settings that decide what is tiered and how long it is kept, before and after; and what is changed."""
        after = self.after()
        shown = [name for name in SETTINGS if name in self.before or name in self.changes]
        return {
            "changes": dict(self.changes),
            "configsBefore": {name: _stated(self.before.get(name)) for name in shown},
            "configsAfter": {name: after[name] for name in shown},
        }


def _stated(value: ConfigValue | None) -> Document | None:
    return None if value is None else {"value": value.value, "source": value.source}


def config_change(
    topic: TopicDescription, before: Mapping[str, ConfigValue], wanted: Mapping[str, str | None]
) -> ConfigChange:
    """The remaining changes; None for settings of the topic's own to remove, unless they are as without them."""
    left = {
        name: to
        for name, to in wanted.items()
        if (_decides(before, name) if to is None else name not in before or before[name].value != to)
    }
    return ConfigChange(topic, before, left)


def is_tiered(settings: Mapping[str, ConfigValue]) -> bool:
    """Whether these settings have remote.storage.enable."""
    return settings.get(REMOTE_STORAGE_ENABLE, _UNSET).value == "true"


def _decides(before: Mapping[str, ConfigValue], name: str) -> bool:
    """Whether the topic has a value of its own that is not the default."""
    return name in before and before[name].source == _OWN and before[name].value != _DEFAULTS.get(name)


def refusals(cluster: Cluster, change: ConfigChange) -> list[Finding]:
    """The cluster's answer to a request to only validate the change. Raises TieredctlError as the cluster does, except
    for what becomes a finding."""
    name = change.topic.topic
    try:
        cluster.alter_topic_configs(name, change.changes, validate_only=True)
    except TieredctlError as error:
        if error.code is ErrorCode.CONFIG_REFUSED:
            message = f"{error.message} {_BY_THE_CONTROLLER}" if _SYSTEM_OFF in error.message else error.message
            return [Finding(FindingCode.TOPIC_CHANGE_REFUSED, f"topic {name}", message, {"topic": name})]
        if error.code is ErrorCode.BROKER_REFUSED:
            return [
                Finding(
                    FindingCode.CHECK_NOT_MADE,
                    f"validation of topic {name}",
                    f"{error.message} {error.hint}",
                )
            ]
        raise
    return []


def make_change(cluster: Cluster, change: ConfigChange) -> None:
    """Makes a planned change in one request, so that either all of it is made or nothing.

    Raises TieredctlError: `world-changed` where the topic was recreated meanwhile, or has other settings; otherwise as
    the cluster does, and then nothing is changed. Only if the cluster does not answer may the change have been made.
    """
    name = change.topic.topic
    if cluster.topic(name).topic_id != change.topic.topic_id:
        raise TieredctlError(
            ErrorCode.WORLD_CHANGED, f"Topic {name} was deleted and recreated meanwhile; nothing was changed."
        )
    now = settings_of(cluster, name)
    if any(now.get(setting) != change.before.get(setting) for setting in (*SETTINGS, *change.changes)):
        raise TieredctlError(
            ErrorCode.WORLD_CHANGED, f"The settings of topic {name} changed meanwhile; nothing was changed."
        )
    cluster.alter_topic_configs(name, change.changes, validate_only=True)
    try:
        cluster.alter_topic_configs(name, change.changes, validate_only=False)
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_UNREACHABLE:
            raise
        hint = "The change may still have been made: run it again to make what remains."
        raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, error.message, hint=hint) from None
