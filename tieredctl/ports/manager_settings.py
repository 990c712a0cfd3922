"""The settings of a RemoteStorageManager that is not Kafka's own: a value behind an entry point of the group
`tieredctl.manager_settings`, by which `doctor` judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tieredctl.errors import TieredctlError
from tieredctl.plugins import PluginKind

MANAGER_SETTINGS = PluginKind("remote storage manager", "tieredctl.manager_settings")


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """What one remote storage manager knows of settings. All names are without the prefix that brokers have before them
    (`remote.log.storage.manager.impl.prefix`)."""

    whose: str
    """What messages call it: "Aiven's plugin"."""
    package: str
    """What the names of its classes begin with."""
    names: frozenset[str]
    """Settings that stand alone."""
    groups: tuple[str, ...] = ()
    """Prefixes of settings that differ between its releases."""
    backend: str = ""
    """The prefix under which the settings of its backend lie; empty where there is none."""
    backends: tuple[str, ...] = ()
    """What the settings of a backend begin with after that."""
    also_kafkas: tuple[str, ...] = ()
    """Prefixes of those that brokers have under the same names."""
    stores: Mapping[str, str] = field(default_factory=dict)
    """By the scheme of a store's URL, the setting that has the bucket, container or folder."""
    key_prefix: str = ""
    """The setting that has the beginning of all keys; empty where there is none."""
    largest_custom_metadata: Callable[[Mapping[str, str], int], int | None] = lambda _settings, _length: None
    """(its settings, the length of a topic's name) -> the most bytes of custom metadata that it gives to Kafka for a
    segment; None where it gives none."""


def installed_managers() -> Iterator[ManagerSettings]:
    """The installed managers' settings, but for what cannot be loaded."""
    for name in MANAGER_SETTINGS.names():
        with suppress(TieredctlError):
            yield MANAGER_SETTINGS.load(name)


def manager_of(class_name: str | None) -> ManagerSettings | None:
    """The one whose class brokers are configured with; None where it is not known."""
    managers = () if class_name is None else installed_managers()
    return next((one for one in managers if class_name is not None and class_name.startswith(one.package)), None)
