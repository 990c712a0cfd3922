"""Real clusters for the integration tests: each is started when the first test asks for it, and shared by all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.rigs.access_rules import AUTHORIZER
from tests.rigs.availability import rig_unavailable
from tests.rigs.broker import OUTLASTS_PAUSES, KafkaBroker
from tests.rigs.forgetful_cluster import ForgetfulCluster, forgetful_cluster
from tests.rigs.leftovers import Leftovers, leftovers
from tests.rigs.maven import KafkaJars, kafka_jars
from tests.rigs.prerequisites import RigMissing
from tests.rigs.secure_listeners import USERNAME
from tests.rigs.workload import DrivenCluster, drive

_WITH_RIGHTS = AUTHORIZER | {"super.users": f"{AUTHORIZER['super.users']};User:{USERNAME}"}
"""Who comes by a plain listener, and the user of the guarded ones, may do all; others what they are granted."""


@dataclass(frozen=True)
class DrivenBroker:
    """A running broker at rest, and what was done to it before. Tests share it: what they change, they undo."""

    broker: KafkaBroker
    cluster: DrivenCluster


@pytest.fixture(scope="session")
def kafka_4() -> Iterator[DrivenBroker]:
    """A driven cluster of Kafka 4.3.1, with its guarded listeners open."""
    yield from _driven_broker("4.3.1")


@pytest.fixture(scope="session")
def kafka_3() -> Iterator[DrivenBroker]:
    """A driven cluster of Kafka 3.9.1, with its guarded listeners open."""
    yield from _driven_broker("3.9.1")


@pytest.fixture(scope="session")
def kafka_4_4() -> Iterator[DrivenBroker]:
    """A driven cluster of Kafka 4.4.0, with its guarded listeners open, for what is exhaustive."""
    yield from _driven_broker("4.4.0")


@pytest.fixture(params=["kafka_4", pytest.param("kafka_3", marks=pytest.mark.exhaustive)])
def driven(request: pytest.FixtureRequest) -> DrivenBroker:
    """Each of the two, one after the other; the older one for a share of the tests."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def leftovers_4() -> Iterator[Leftovers]:
    """A cluster of 4.3.1 that has what deleted topics left. Its plain listener may do all, other users what they are
    granted. Tests that remove what is left, or grant more, are in the folders that come last."""
    with leftovers(jars_of("4.3.1"), **AUTHORIZER) as made:
        yield made


@pytest.fixture(scope="session")
def forgetful_4() -> Iterator[ForgetfulCluster]:
    """A cluster of 4.3.1 whose metadata topic tests lose, and recover."""
    with forgetful_cluster(jars_of("4.3.1")) as made:
        yield made


def jars_of(version: str) -> KafkaJars:
    """A release's jars; the test ends where they cannot be had."""
    try:
        return kafka_jars(version)
    except RigMissing as missing:
        reason = str(missing)
    return rig_unavailable(reason)


def _driven_broker(version: str) -> Iterator[DrivenBroker]:
    with KafkaBroker(jars_of(version), secure=True, properties=_WITH_RIGHTS | OUTLASTS_PAUSES) as broker:
        yield DrivenBroker(broker, drive(broker))
