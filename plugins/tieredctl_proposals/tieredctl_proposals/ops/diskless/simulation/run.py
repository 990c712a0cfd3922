"""Runs a simulation from its seed, and tells what came of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tieredctl_proposals.coordinator.gateways import Deployment, placed_gateways
from tieredctl_proposals.coordinator.recovery import Origin
from tieredctl_proposals.ops.diskless.simulation.brokers import Broker, Producer, Production
from tieredctl_proposals.ops.diskless.simulation.cleaning import Cleaning
from tieredctl_proposals.ops.diskless.simulation.consumers import Consumers
from tieredctl_proposals.ops.diskless.simulation.settings import Settings
from tieredctl_proposals.ops.diskless.simulation.world import World
from tieredctl_proposals.ops.diskless.written_states import written_states

_LONGEST_PRODUCTION_MS = 30 * 86_400_000
_LONGEST_ELECTION_MS = 60_000
_SPARE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened, what was lost, and what is still in the store after everything had time to be cleaned."""

    counts: dict[str, int]
    lost: dict[str, int]
    puts: int
    gets: int
    lists: int
    deletes: int
    uploaded_bytes: int
    byte_ms: int
    left: int
    produced_ms: int
    lasted_ms: int


def simulate(settings: Settings, folder: Path) -> Outcome:
    """Runs until everything is produced, acknowledged, and no longer retained. States are kept in the folder.

    Raises TieredctlError `unwritable` where the folder does not take them.
    """
    with written_states(folder.parent, "the simulated coordinators"), closing(World(settings, folder)) as world:
        return _simulate(world)


def _simulate(world: World) -> Outcome:
    settings, schedule, store, counts = world.settings, world.schedule, world.store, world.promises.counts
    production = Production(settings.batches)
    brokers = _brokers(world, production)
    Cleaning(world)
    Consumers(world)
    schedule.run(lambda: production.is_over, _LONGEST_PRODUCTION_MS)
    produced_ms = schedule.now_ms
    for host in world.hosts:
        host.has_faults = False
    schedule.run(lambda: all(host.is_led for host in world.hosts), produced_ms + _LONGEST_ELECTION_MS)
    world.promises.audit()
    schedule.run(lambda: not store.objects, schedule.now_ms + _longest_cleaning_ms(settings))
    counts["broker crashes"] = sum(broker.crashes for broker in brokers)
    counts["failovers"] = sum(host.failovers for host in world.hosts)
    counts["snapshots"] = sum(host.snapshots for host in world.hosts)
    for origin in Origin:
        counts[f"recoveries from {origin.value}"] = sum(host.recoveries[origin] for host in world.hosts)
    return Outcome(
        dict(counts),
        {name: number for name, number in world.promises.lost.items() if number},
        *(store.puts, store.gets, store.lists, store.deletes, store.put_bytes, store.byte_ms),
        *(len(store.objects), produced_ms, schedule.now_ms),
    )


def _longest_cleaning_ms(settings: Settings) -> int:
    """By when everything has to be gone: retained no longer, handed over by each, left alone, and looked for twice."""
    owned = settings.retention_ms + 2 * settings.grace_ms * (settings.coordinators + 1)
    return owned + settings.orphan_grace_ms + 3 * settings.orphan_scan_ms + 4 * settings.clock_skew_ms + _SPARE_MS


def _brokers(world: World, production: Production) -> list[Broker]:
    """Each with its producers, which prefer the gateways of their partitions if there are any."""
    settings = world.settings
    deployment = Deployment.even(settings.brokers, settings.racks, settings.coordinators)
    gateways = placed_gateways(deployment)
    brokers = []
    for broker_id in range(settings.brokers):
        every = tuple(range(settings.coordinators))
        coordinators = gateways.coordinators[broker_id] if settings.uses_gateways else every
        producers = [
            Producer(
                broker_id * settings.producers_per_broker + number,
                world.hosts[coordinators[number % len(coordinators)]],
                world.chance.randrange(settings.partitions_per_coordinator),
            )
            for number in range(settings.producers_per_broker if coordinators else 0)
        ]
        brokers.append(Broker(broker_id, world, producers, production, deployment.hosts.__getitem__))
    return brokers
