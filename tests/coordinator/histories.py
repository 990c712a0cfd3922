"""Random requests to a coordinator: few topics, partitions, producers and keys, so that they often concern the same."""

from __future__ import annotations

from random import Random

from tieredctl_proposals.model.diskless_requests import (
    BatchQuery,
    CommitBatch,
    CommitFile,
    CreatablePartitions,
    CreatePartitions,
    DeletableRecords,
    DeleteRecords,
    DeleteTopics,
    DescribeFiles,
    FindBatches,
    ListOffsets,
    OffsetQuery,
)

from tests.coordinator.model_coordinator import ModelCoordinator
from tieredctl.model.ids import uuid_text

TOPIC_IDS = [uuid_text(bytes([number]) * 16) for number in range(1, 5)]
NAMES = ["orders", "payments"]
PRODUCERS = 3
LAST_SEQUENCE = 2**31 - 1


class RandomRequests:
    """Draws requests that mostly make sense to a model, and sometimes do not."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._files = 0

    def create_partitions(self) -> CreatePartitions:
        random = self._random
        topics = [
            CreatablePartitions(topic_id, random.choice(NAMES) if random.random() < 0.1 else NAMES[0], number)
            for topic_id, number in zip(self._topic_ids(), (random.randint(0, 3), random.randint(1, 3)), strict=False)
        ]
        return CreatePartitions(tuple(topics))

    def delete_topics(self) -> DeleteTopics:
        return DeleteTopics((self._random.choice(TOPIC_IDS),))

    def delete_records(self, model: ModelCoordinator) -> DeleteRecords:
        random = self._random
        asked = []
        for _ in range(random.randint(1, 3)):
            topic_id, number = self._place()
            partition = model.partitions.get((topic_id, number))
            end = partition.end if partition else 0
            asked.append(DeletableRecords(topic_id, number, random.choice([-1, 0, end + 1, random.randint(0, end)])))
        return DeleteRecords(tuple(asked))

    def commit_file(self, model: ModelCoordinator) -> CommitFile:
        random = self._random
        key = f"file-{self._files}"
        if self._files and random.random() < 0.05:
            key = f"file-{random.randrange(self._files)}"
        self._files += 1
        position = 0
        batches = []
        for _ in range(random.choice([1, 1, 2, 5, 9])):
            batches.append(self._batch(model, position))
            position += batches[-1].byte_size + random.choice([0, 0, 7])
        if random.random() < 0.02:
            batches[0] = batches[0]._replace(byte_size=0)
        owners = () if random.random() < 0.02 else (0, 2)
        return CommitFile(key, position, owners, tuple(batches))

    def list_offsets(self) -> ListOffsets:
        asked = [OffsetQuery(*self._place(), self._random.choice([-1, -2, -3, -4, -5, self._time()])) for _ in "1234"]
        return ListOffsets(tuple(asked))

    def find_batches(self, model: ModelCoordinator) -> FindBatches:
        random = self._random
        asked = []
        for _ in range(random.randint(1, 4)):
            place = self._place()
            end = model.partitions[place].end if place in model.partitions else 0
            asked.append(BatchQuery(*place, random.randint(0, end + 1), random.choice([0, 60, 400, 10_000])))
        return FindBatches(random.choice([0, 100, 1_000]), random.choice([0, 1, 3]), tuple(asked))

    def describe_files(self) -> DescribeFiles:
        return DescribeFiles(tuple(f"file-{number}" for number in range(max(0, self._files - 8), self._files + 1)))

    def _batch(self, model: ModelCoordinator, position: int) -> CommitBatch:
        random = self._random
        place = self._place()
        records = random.choice([1, 1, 3, 10])
        base = random.choice([0, 0, 0, 5])
        batch = CommitBatch(*place, position, 10 + random.randrange(90), base, base + records - 1, self._time())
        batch = batch._replace(timestamp_type=int(random.random() < 0.3))
        return batch if random.random() < 0.3 else self._produced(model, place, batch, records)

    def _produced(
        self, model: ModelCoordinator, place: tuple[str, int], batch: CommitBatch, records: int
    ) -> CommitBatch:
        random = self._random
        producer_id = random.randrange(PRODUCERS)
        partition = model.partitions.get(place)
        remembered = partition.remembered(producer_id) if partition else []
        latest = remembered[-1].asked if remembered else None
        epoch = latest.producer_epoch if latest else 0
        first = (latest.last_sequence + 1) % 2**31 if latest else random.choice([0, 0, 17, LAST_SEQUENCE - 3])
        kind = random.random()
        if latest and kind < 0.15:  # sent again: one of the last, or one that is forgotten
            asked = random.choice(partition.produced[producer_id][-8:]).asked if partition else latest
            span = asked.last_offset - asked.base_offset
            return asked._replace(byte_offset=batch.byte_offset, base_offset=0, last_offset=span)
        if kind < 0.2:
            first = (first + random.choice([1, 5, -1])) % 2**31
        elif kind < 0.4:
            epoch, first = max(0, epoch + random.choice([1, 1, 1, -1])), random.choice([0, 0, 0, first])
        last = (first + records - 1) % 2**31
        return batch._replace(producer_id=producer_id, producer_epoch=epoch, base_sequence=first, last_sequence=last)

    def _topic_ids(self) -> list[str]:
        return self._random.sample(TOPIC_IDS, 2)

    def _place(self) -> tuple[str, int]:
        return self._random.choice(TOPIC_IDS[:3] if self._random.random() < 0.95 else TOPIC_IDS), (
            self._random.randint(0, 2)
        )

    def _time(self) -> int:
        return 1_000 + self._random.randrange(200)
