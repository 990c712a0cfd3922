"""Brokers that do not apply what the controllers decide are distinguished from those that lag, or cannot be judged."""

from __future__ import annotations

from collections.abc import Sequence

from tests.tiering.model_cluster import ModelCluster
from tieredctl.ops.doctor.metadata_progress import Watch, brokers_at_a_standstill
from tieredctl.ports.cluster import MetadataProgress


class Looks(ModelCluster):
    """Answers one look after the other, and the last one for ever; time passes by looks."""

    def __init__(self, *looks: tuple[int | None, dict[int, int | None]]) -> None:
        super().__init__()
        self.looks: Sequence[MetadataProgress] = [MetadataProgress(*look) for look in looks]
        self.asked = 0

    def metadata_progress(self) -> MetadataProgress:
        self.asked += 1
        return self.looks[min(self.asked, len(self.looks)) - 1]


BRIEFLY = Watch(0.05, lambda: None)


def test_brokers_that_stay_where_they_are_while_the_log_grows_stand_still() -> None:
    cluster = Looks((100, {1: 40, 2: 40, 3: None}), (110, {1: 40, 2: 41, 3: None}))

    found = brokers_at_a_standstill(cluster, BRIEFLY)

    assert found is not None
    assert (found.subject, found.evidence["silentBrokers"]) == ("broker 1", [3])
    assert "broker 1 at 40; the log ends at 110; no answer from 3" in found.message
    assert found.remedy == "start 3 again; if that does not help, restart each of: 1"


def test_nobody_else_does() -> None:
    cases: list[Sequence[tuple[int | None, dict[int, int | None]]]] = [
        ((100, {1: 100, 2: 101}),),
        ((100, {1: 90}), (110, {1: 100})),
        ((100, {1: 99}), (100, {1: 99})),
        ((None, {1: 40, 2: None}), (None, {1: 40, 2: None})),
    ]
    for looks in cases:
        assert brokers_at_a_standstill(Looks(*looks), BRIEFLY) is None, looks
    # Where nobody is behind one look is enough.
    cluster = Looks((100, {1: 100, 2: 100}))
    brokers_at_a_standstill(cluster, BRIEFLY)
    assert cluster.asked == 1
