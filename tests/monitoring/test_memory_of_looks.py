"""An exporter runs for months: a look leaves nothing behind."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.wiring.exporter import METADATA, STORE, Exporter
from tieredctl.wiring.exporter_metrics import ExporterMetrics
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, StorePlace
from tieredctl.wiring.status import StatusPlaces

HOUR_MS, INTERVAL_SECONDS = 3_600_000, 30
LOOKS = int(os.environ.get("TIEREDCTL_EXPORTER_LOOKS", "1000"))
MOST_BYTES = 2 << 20
FEWER_THAN_LOOKS = 10
"""Objects that may be there besides: of threads that are about to end, say."""


class Watched:
    """An exporter that is scraped after each look."""

    def __init__(self, places: StatusPlaces) -> None:
        self.exporter = Exporter(places, HOUR_MS, 100)
        self._metrics = ExporterMetrics(lambda: self.exporter.latest, INTERVAL_SECONDS)

    def look(self, times: int) -> None:
        for _ in range(times):
            self.exporter.refresh()
            assert list(self._metrics.collect())
        gc.collect()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_looks_take_no_more_memory_than_two_hundred(captures: Path) -> None:
    capture = captures / "kafka-4.3.1"
    store = StorePlace(f"file:{capture / 'remote/kafka-tiered-storage'}", {}, "local", {})
    watched = Watched(StatusPlaces(MetadataPlace((capture / "data",)), store, ()))
    watched.look(200)
    before = resident_bytes()

    watched.look(LOOKS - 200)

    assert resident_bytes() - before < MOST_BYTES
    assert all(watched.exporter.latest.parts[part].is_up for part in (METADATA, STORE))


@pytest.mark.integration
def test_looks_at_a_broker_leave_no_objects(kafka_4: DrivenBroker) -> None:
    cluster = ClusterPlace(kafka_4.broker.bootstrap_server)
    watched = Watched(StatusPlaces(MetadataPlace(cluster=cluster), None, ()))
    watched.look(10)
    before = len(gc.get_objects())

    watched.look(30)

    assert len(gc.get_objects()) - before < FEWER_THAN_LOOKS
