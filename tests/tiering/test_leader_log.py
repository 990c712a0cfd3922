"""A leader's log, asked for question by question while retention raises its start: what is known of it is one log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from tests.metadata_logs import TOPIC_ID
from tieredctl.model.local_log import epochs_from
from tieredctl.ops.cluster.leader import read_leader_log
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, PartitionDescription, TopicDescription

EPOCHS = ((3, 0), (4, 100), (7, 200))
END = 300
ORDERS = TopicDescription("orders", TOPIC_ID, [PartitionDescription(0, 1, EPOCHS[-1][0], [1], [1])])


@dataclass
class RisingLeader:
    """Answers as a broker with these epochs; before one of its answers, its log start rises."""

    rises_before: int
    rises_to: int
    asked: int = 0

    def list_offsets(self, _topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        start = self._start()
        known: dict[int, int] = {OffsetSpec.EARLIEST: start, OffsetSpec.LATEST: END}
        return {0: ListedOffset(known.get(timestamp, max(start, 250)))}

    def epoch_end_offset(self, _topic: TopicDescription, _partition: int, leader_epoch: int) -> tuple[int, int] | None:
        """As LeaderEpochFileCache.endOffsetFor."""
        epochs = epochs_from(EPOCHS, self._start())
        if leader_epoch > epochs[-1][0]:
            return None
        following = next((offset for epoch, offset in epochs if epoch > leader_epoch), END)
        return max((epoch for epoch, _ in epochs if epoch <= leader_epoch), default=leader_epoch), following

    def _start(self) -> int:
        self.asked += 1
        return self.rises_to if self.asked > self.rises_before else 0


def test_a_log_start_that_rises_between_two_answers_gives_no_epoch_that_the_log_does_not_have() -> None:
    for rises_to in (50, 100, 150, 200, 250, END):
        rises_before, is_over = 0, False
        while not is_over:
            leader = RisingLeader(rises_before, rises_to)

            log = read_leader_log(cast(Cluster, leader), ORDERS).log

            assert log.log_start_offset in (0, rises_to)
            assert log.leader_epochs == tuple(epochs_from(EPOCHS, log.log_start_offset)), (rises_to, rises_before)
            is_over, rises_before = leader.asked <= rises_before, rises_before + 1
