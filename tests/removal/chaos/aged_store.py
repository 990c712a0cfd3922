"""A store in a container of Azurite in which some objects are as old as a model says, for commands too: `aged:`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.storage.azure import AzureStore
from tieredctl.storage.azure_connection import azure_connection
from tieredctl.storage.bucket_address import bucket_address
from tieredctl.storage.own_kinds import AZURE

SCHEME = "aged"
"""Of the URLs by which the command opens one; `startup` has the entry point."""
AGES = "ages"
"""The option that names the folder of ages, and what that is called."""


@dataclass(frozen=True, slots=True)
class AgedStore(AzureStore):
    """A container in which some objects are as old as a model says, whatever the server does."""

    ages: Path = Path()
    """A folder with a file for each version of them."""

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        # A dataclass with slots is another class than the one that super() would look for.
        return map(self.aged, AzureStore._listing(self, prefix, start_after))

    def head(self, key: str) -> StoredObject | None:
        found = AzureStore.head(self, key)
        return None if found is None else self.aged(found)

    def aged(self, stored: StoredObject) -> StoredObject:
        try:
            return stored._replace(last_modified_ms=int(self.age_of(stored).read_text()))
        except FileNotFoundError:
            return stored

    def age_of(self, stored: StoredObject) -> Path:
        return self.ages / sha256(f"{stored.key} {stored.version}".encode()).hexdigest()


def _open(rest: str, options: Mapping[str, str], relied_on: frozenset[Capability]) -> AgedStore:
    connection = azure_connection({name: value for name, value in options.items() if name != AGES})
    return AgedStore(bucket_address(SCHEME, rest), connection, relied_on, Path(options[AGES]))


AGED = replace(AZURE, scheme=SCHEME, form="aged://CONTAINER/PREFIX", open=_open, options=(*AZURE.options, AGES))
