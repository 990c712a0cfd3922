"""What was tried to connect to a cluster, step by step, and what its user may do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, NamedTuple

from tieredctl.errors import TieredctlError
from tieredctl.model.result_row import Column, JsonOnly, Main, ResultRow


class Step(StrEnum):
    """In the order in which they are tried: a server tells its versions before a login."""

    NAME = "name"
    TCP = "tcp"
    TLS = "tls"
    VERSIONS = "versions"
    SIGN_IN = "sign-in"
    BROKERS = "brokers"
    RIGHTS = "rights"


class StepOutcome(StrEnum):
    """What became of a step."""

    OK = "ok"
    ATTENTION = "attention"
    """It works, and will not for long, or not everywhere."""
    FAILED = "failed"
    DENIED = "denied"
    """The user lacks a right, which may be meant so."""
    UNKNOWN = "unknown"
    NOT_TRIED = "not-tried"


@dataclass(frozen=True, slots=True)
class ConnectionStep(ResultRow):
    """One step for one server, or for the commands that need the same rights."""

    subject: Main[str]
    step: Main[Step]
    outcome: Main[StepOutcome]
    found: Main[str]
    """What was seen, in words."""
    next_step: Annotated[str | None, Column("NEXT", wide=True)] = None
    """What to do, where something is to be done."""
    evidence: JsonOnly[Mapping[str, object]] = field(default_factory=dict)


class AllowedOperations(NamedTuple):
    """The operations of Kafka's ACLs that a cluster says its user may do, by what they are about; None is unknown."""

    metadata_topic: frozenset[str] | None
    topics: Mapping[str, frozenset[str] | None] | None
    """By the name of each topic that the user may see, without Kafka's own."""
    any_topic: frozenset[str] | None
    """On a topic of any name: of Describe and DescribeConfigs alone."""
    cluster: Mapping[str, bool]
    """An operation that is not here is unknown."""
    any_group: frozenset[str] | None
    """On a consumer group of any name: Describe, or nothing."""


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """All steps that were tried; `allowed` is None where no server accepted the user."""

    steps: Sequence[ConnectionStep]
    errors: Sequence[TieredctlError]
    """Why servers did not accept the client, where none did."""
    cluster_id: str | None = None
    server: str | None = None
    """The server that was asked what the user may do."""
    allowed: AllowedOperations | None = None
