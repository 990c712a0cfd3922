"""What the coordinators of the suite `coordinator` are asked, and what is measured of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tieredctl_proposals.model.diskless_requests import CommitBatch, CommitFile

from tieredctl.model.ids import uuid_text

BATCHES_IN_A_FILE = 500
"""A broker uploads a file after 250 ms or 8 MiB."""
PARTITIONS = 1_000
TOPIC_ID = uuid_text(b"\1" * 16)
NOW_MS = 1_700_000_000_000


@dataclass
class Committed:
    """How many batches were committed, what that took, in seconds, generating the requests not counted; and by how many
    bytes the state grew."""

    batches: int
    wall: float
    cpu: float
    bytes: int


def requests(batches: int) -> Iterator[CommitFile]:
    """Files of batches of 10 records; half of them have idempotent producers, one for each partition."""
    sequences = [0] * PARTITIONS
    for number in range(batches // BATCHES_IN_A_FILE):
        first = number * BATCHES_IN_A_FILE
        in_file = []
        for at in range(BATCHES_IN_A_FILE):
            partition = (first + at * 7) % PARTITIONS
            batch = CommitBatch(TOPIC_ID, partition, at * 1000, 1000, 0, 9, NOW_MS - at)
            if partition % 2:
                sequence = sequences[partition]
                sequences[partition] += 10
                batch = batch._replace(
                    producer_id=partition, producer_epoch=0, base_sequence=sequence, last_sequence=sequence + 9
                )
            in_file.append(batch)
        yield CommitFile(f"objects/{number:022}", BATCHES_IN_A_FILE * 1000, (0,), tuple(in_file))
