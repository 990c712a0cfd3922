"""What all parts of a simulation share."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.object_store import SimulatedStore
from tieredctl_proposals.ops.diskless.simulation.promises import Promises
from tieredctl_proposals.ops.diskless.simulation.schedule import Schedule
from tieredctl_proposals.ops.diskless.simulation.settings import Settings


class World:
    """Time, chance, the store, the coordinators, and what was promised."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.schedule, self.chance = Schedule(), Random(settings.seed)
        skew_ms = self.chance.randint(-settings.clock_skew_ms, settings.clock_skew_ms)
        self.store = SimulatedStore(self.schedule, self.chance, settings.slow_store_rate, skew_ms)
        self.hosts: list[CoordinatorHost] = []
        self.promises = Promises(self.store, self.hosts)
        for number in range(settings.coordinators):
            self.hosts.append(CoordinatorHost(number, settings, self.schedule, self.chance, folder / str(number)))

    def close(self) -> None:
        """Closes what coordinators have open."""
        for host in self.hosts:
            host.close()
