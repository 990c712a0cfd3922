"""A topic that is deleted while a cluster is looked at: nothing of it is left to be checked."""

from __future__ import annotations

from dataclasses import dataclass

from tests.doctor.test_remote_gaps import Leader, findings
from tests.metadata_logs import TOPIC_ID, copied
from tests.tiering.model_cluster import TOPIC
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition, LivePartitions

PARTITION = TopicIdPartition(TOPIC_ID, TOPIC, 0)


@dataclass
class Doubtful(Leader):
    """One whose leader is asked again, as the metadata lacks what it trimmed."""

    def __post_init__(self) -> None:
        self.events += copied(1, 0, 9)


def test_doctor_leaves_no_check_out_whenever_the_topic_goes() -> None:
    whole = Doubtful()
    findings(whole)

    for question in range(1, whole.boundaries + 1):
        found = findings(Doubtful(gone_at=question))

        assert FindingCode.CHECK_NOT_MADE not in {one.code for one in found}, question


def test_recovery_takes_the_partition_for_gone_whenever_the_topic_goes() -> None:
    whole = Doubtful()
    seen = LivePartitions(whole).look(PARTITION)

    for question in range(1, whole.boundaries + 1):
        topics = LivePartitions(Doubtful(gone_at=question))

        assert (topics.look(PARTITION), topics.look(PARTITION)) == (LivePartition(None),) * 2, question
    assert seen.log is not None
