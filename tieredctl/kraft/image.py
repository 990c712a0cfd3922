"""The cluster as of an offset of the metadata log (Kafka's MetadataImage)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.formats.wire import Values
from tieredctl.model.ids import uuid_text

MIGRATING_DIRECTORY = bytes(16)
"""The directory of a replica whose log directory no record ever gave (DirectoryId.MIGRATING)."""
METADATA_VERSION = "metadata.version"
BROKER_RESOURCE, TOPIC_RESOURCE = 4, 2
"""ConfigResource.Type."""

Entity = tuple[tuple[str, str | None], ...]
"""What a client quota is for: pairs of type and name, sorted; a name of None means the default."""


@dataclass(slots=True)
class Topic:
    """A topic; each partition has the fields of a PartitionRecord."""

    name: str
    partitions: dict[int, Values] = field(default_factory=dict)


class RefusedRecord(NamedTuple):
    """A record that does not fit what came before it: Kafka stops at it, or leaves it out."""

    offset: int
    type_name: str
    reason: str


@dataclass(slots=True)
class ClusterImage:
    """What the records up to an offset say. Values have the fields of Kafka's records, in their latest version.

    Ids of topics, directories and ACLs are their 16 bytes.
    """

    topics: dict[bytes, Topic] = field(default_factory=dict)
    brokers: dict[int, Values] = field(default_factory=dict)
    """Registrations; `Fenced` is the last known state."""
    controllers: dict[int, Values] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """By resource (ConfigResource.Type, name); an empty broker name is every broker's default."""
    features: dict[str, int] = field(default_factory=dict)
    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    acls: dict[bytes, Values] = field(default_factory=dict)
    credentials: dict[tuple[int, str], Values] = field(default_factory=dict)
    """SCRAM credentials, by mechanism and user: secrets, which are not for showing."""
    tokens: dict[str, Values] = field(default_factory=dict)
    next_producer_id: int | None = None
    zk_migration_state: int = 0
    voters: dict[int, Values] | None = None
    """None where no record gives them: then `controller.quorum.voters` does."""
    kraft_version: int = 0
    leader: int | None = None
    """The last leader that the log names; a snapshot names none."""
    end_offset: int = 0
    """Exclusive."""
    as_of_ms: int = -1
    """When the last record was written, by the controller's clock."""
    unknown_records: Counter[str] = field(default_factory=Counter)
    """Records of types or versions that later releases added: what they change is unknown."""
    refused: list[RefusedRecord] = field(default_factory=list)

    @property
    def is_certain(self) -> bool:
        """Whether every record was understood, and fitted."""
        return not self.unknown_records and not self.refused

    @property
    def topic_ids(self) -> frozenset[str]:
        return frozenset(map(uuid_text, self.topics))

    def topics_named(self, name: str) -> list[bytes]:
        """The ids of the topic of this name: one, or none."""
        return [topic_id for topic_id, topic in self.topics.items() if topic.name == name]
