"""Tables as Inkless's remote log metadata manager keeps them in PostgreSQL, with rows as it writes them."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.rigs.inkless import READER, Inkless

_PARTITION = "cluster_id text NOT NULL, topic_id uuid NOT NULL, partition_id integer NOT NULL"
_SEGMENT = f"{_PARTITION}, segment_id uuid NOT NULL"
MIGRATION = ("1", "V1__Create_rlmm_tables.sql", 1815211617)
_SCHEMA = (
    "CREATE SCHEMA inkless_rlmm",
    f"""CREATE TABLE inkless_rlmm.rlmm_segments ({_SEGMENT},
        start_offset bigint NOT NULL, end_offset bigint NOT NULL, max_timestamp_ms bigint NOT NULL,
        segment_size integer NOT NULL, txn_idx_empty boolean NOT NULL, leader_epochs jsonb NOT NULL,
        state smallint NOT NULL, custom_metadata bytea, broker_id integer NOT NULL, event_timestamp_ms bigint NOT NULL,
        PRIMARY KEY (cluster_id, topic_id, partition_id, segment_id))""",
    f"""CREATE TABLE inkless_rlmm.rlmm_segment_epochs ({_SEGMENT},
        epoch integer NOT NULL, epoch_start_offset bigint NOT NULL, epoch_end_offset bigint NOT NULL,
        referenced boolean NOT NULL, PRIMARY KEY (cluster_id, topic_id, partition_id, segment_id, epoch))""",
    "CREATE TABLE inkless_rlmm.flyway_schema_history_rlmm (LIKE public.flyway_schema_history INCLUDING DEFAULTS)",
    f"""INSERT INTO inkless_rlmm.flyway_schema_history_rlmm
        (installed_rank, version, description, type, script, checksum, installed_by, execution_time, success)
        VALUES (0, NULL, 'Flyway Schema Creation', 'SCHEMA', 'inkless_rlmm', NULL, 'inkless', 0, true),
        (1, '{MIGRATION[0]}', 'Create rlmm tables', 'SQL', '{MIGRATION[1]}', {MIGRATION[2]}, 'inkless', 1, true)""",
)
GRANTS = (
    f"GRANT USAGE ON SCHEMA inkless_rlmm TO {READER}",
    f"""GRANT SELECT ON inkless_rlmm.rlmm_segments, inkless_rlmm.rlmm_segment_epochs,
        inkless_rlmm.flyway_schema_history_rlmm TO {READER}""",
)
"""What asking the schema takes besides."""


class Segment(NamedTuple):
    """A tiered segment. Offsets are inclusive."""

    number: int
    start: int
    end: int
    epochs: dict[int, int]
    state: int = 1
    is_referenced: bool = True
    cluster: str = "cluster-1"


def make_schema(inkless: Inkless) -> None:
    inkless.run(*_SCHEMA, *GRANTS)


def add_segment(inkless: Inkless, topic_id: str, segment: Segment) -> None:
    """To partition 0 of the topic; the id is in PostgreSQL's form."""
    name = f"00000000-0000-4000-8000-{segment.number:012}"
    place = f"'{segment.cluster}', '{topic_id}', 0, '{name}'"
    lasts = [first - 1 for first in list(segment.epochs.values())[1:]] + [segment.end]
    inkless.run(
        f"INSERT INTO inkless_rlmm.rlmm_segments VALUES ({place}, {segment.start}, {segment.end}, 7, 99, true,"
        f" '{json.dumps(segment.epochs)}', {segment.state}, NULL, 3, 8)",
        *(
            f"INSERT INTO inkless_rlmm.rlmm_segment_epochs VALUES"
            f" ({place}, {epoch}, {first}, {last}, {segment.is_referenced})"
            for (epoch, first), last in zip(segment.epochs.items(), lasts, strict=True)
        ),
    )
