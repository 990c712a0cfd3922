"""What brokers have to be told to read another store: the settings of their remote storage manager."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.ops.orphans.bucket_inventory import BucketPlace
from tieredctl.ports.manager_settings import MANAGER_SETTINGS, ManagerSettings

BROKERS_PREFIX = "rsm.config."
"""Kafka's default of remote.log.storage.manager.impl.prefix."""


def settings_to_change(
    layout: str, source: BucketPlace, destination: BucketPlace, of_key_pair: Sequence[str] = ()
) -> Iterator[str]:
    """Sentences, one for each setting, and one for those of another key pair; none where it is not known what writes
    the layout."""
    if layout not in MANAGER_SETTINGS.names():
        return
    manager: ManagerSettings = MANAGER_SETTINGS.load(layout)
    name = manager.stores.get(destination.scheme)
    if name is None:
        return
    yield f"Brokers read it once {manager.whose} has {BROKERS_PREFIX}{name}={destination.bucket}."
    if source.scheme != destination.scheme:
        backend = f"{BROKERS_PREFIX}{manager.backend}backend.class"
        yield f"Its backend is another one: {backend} changes too, with all that this one needs."
    if source.root != destination.root:
        what = f"instead of {source.root} " if source.root else ""
        begins = f"begin with {destination.root} {what}" if destination.root else f"lose {source.root} "
        yield f"Its {BROKERS_PREFIX}{manager.key_prefix} has to {begins.strip()}."
    if of_key_pair:
        named = ", ".join(BROKERS_PREFIX + setting for setting in of_key_pair)
        yield f"Its data keys are wrapped for another key pair: brokers need {named}."
