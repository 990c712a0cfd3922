"""Random sequences of records against Kafka's own image."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.random_metadata_records import RandomRecords, encoded
from tests.rigs.image_records import image_records, kafka_records
from tests.rigs.line_program import LineProgram
from tests.rigs.maven import kafka_jars
from tieredctl.formats.kraft_log import KraftRecordType, decode_kraft_record
from tieredctl.kraft.replay import MetadataReplay

FIRST = encoded(KraftRecordType.FEATURE_LEVEL, {"Name": "metadata.version", "FeatureLevel": 30})
BEGIN, END, ABORT = (
    encoded(kind, {})
    for kind in (
        KraftRecordType.BEGIN_TRANSACTION,
        KraftRecordType.END_TRANSACTION,
        KraftRecordType.ABORT_TRANSACTION,
    )
)


def replayed_one_by_one(seed: int, count: int) -> tuple[list[bytes], MetadataReplay]:
    """A sequence, and the replay of it; about one record in twenty is of a transaction."""
    replay = MetadataReplay()
    records = RandomRecords(seed, replay.image)
    values: list[bytes] = []

    def take(*drawn: bytes) -> None:
        for value in drawn:
            replay.take(len(values), decode_kraft_record(value))
            values.append(value)

    take(FIRST)
    while len(values) < count:
        if records.chance.random() < 0.02:
            take(BEGIN)
            for _ in range(records.chance.randint(0, 3)):
                take(records.draw(in_transaction=True))
            take(records.chance.choice([END, ABORT]))
        else:
            take(records.draw())
    return values, replay


def asked(values: Sequence[bytes]) -> list[str]:
    return [*(f"batch {offset} {value.hex()}" for offset, value in enumerate(values)), "end"]


@pytest.mark.integration
def test_the_image_is_kafkas_after_any_records() -> None:
    kinds, refused = set(), 0
    with LineProgram(kafka_jars("4.3.1"), "MetadataImageOracle") as kafka:
        for seed in range(30):
            values, replay = replayed_one_by_one(seed, 200)

            answer = kafka.ask(asked(values))

            assert image_records(replay.image) == kafka_records(answer["records"]), seed
            assert bool(replay.image.refused) == bool(answer["faults"]), seed
            kinds |= {decode_kraft_record(value).api_key for value in values}
            refused += len(replay.image.refused)
    assert kinds == set(KraftRecordType) - {KraftRecordType.ZK_MIGRATION_STATE}
    assert refused
