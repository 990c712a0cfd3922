"""The known schemas of Inkless's control plane: Flyway's history of the migrations that made each.

A schema that tieredctl does not know is refused: by it, an object that some new table needs would look orphaned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError


class Migration(NamedTuple):
    """A row of Flyway's history. Flyway computes the checksum, of the script's lines."""

    version: str
    script: str
    checksum: int | None


KNOWN = (
    Migration("1", "V1__Create_tables.sql", -439737950),
    Migration("2", "V2__Speed_up_delete_topic_and_delete_records.sql", 1216955658),
    Migration("3", "V3__Add_logs_size.sql", -1707584858),
    Migration("4", "V4__Retention_enforcement.sql", -1636337459),
    Migration("5", "V5__Fix_deadlock_in_delete_records_v1.sql", -1794974033),
    Migration("6", "V6__Improve_understandability_of_delete_topic_v1.sql", -129306732),
    Migration("7", "V7__Find_batches_function.sql", 391338554),
    Migration("8", "V8__Find_batches_function_with_limit.sql", 1695471501),
    Migration("9", "V9__Retention_enforcement_with_limits.sql", 1044154939),
    Migration("10", "V10__Covering_index_on_batches.sql", -961007888),
    Migration("11", "V11__Init_diskless_log.sql", 1910629080),
    Migration("12", "V12__Remove_file_merge.sql", 1119226277),
    Migration("13", "V13__Prune_diskless_batches.sql", -1143380536),
    Migration("14", "V14__Commit_file_coalescing.sql", 1034643655),
    Migration("15", "V15__Find_batches_rejects_below_log_start.sql", 213842889),
    Migration("16", "V16__Cross_tier_log_start.sql", -400996469),
    Migration("17", "V17__List_offsets_cross_tier_earliest.sql", -1861920817),
    Migration("18", "V18__Repair_diskless_log.sql", 1248476726),
    Migration("19", "V19__Find_batches_bounded_scan.sql", 1850722160),
    Migration("20", "V20__Logs_earliest_batch_timestamp.sql", -1102758053),
    Migration("21", "V21__Retention_enforcement_lock_decoupling.sql", 1113578604),
    Migration("22", "V22__Retention_enforcement_bounded_scan.sql", 144622953),
    Migration("23", "V23__Init_diskless_log_authoritative_seal.sql", -861729507),
    Migration("24", "V24__Table_storage_tuning.sql", -1712765692),
    Migration("25", "V25__File_cleaner_marked_for_deletion_index.sql", -599176633),
    Migration("26", "V26__Drop_files_by_state_only_deleting_index.sql", -883937546),
    Migration("27", "V27__Find_batches_request_level_min_one_message.sql", -1153769694),
)
OLDEST_KNOWN = 12
"""Until then files were merged, and other tables than `batches` told what a file was needed for."""


class KnownSchema(NamedTuple):
    """A schema that Flyway makes, with a history of its own."""

    name: str
    """At the beginning of a sentence."""
    migrations: Sequence[Migration]
    oldest: int
    """The first version that is known."""


CONTROL_PLANE = KnownSchema("The control plane's schema", KNOWN, OLDEST_KNOWN)
REMOTE_LOG_METADATA = KnownSchema(
    "The database's schema inkless_rlmm", [Migration("1", "V1__Create_rlmm_tables.sql", 1815211617)], 1
)
"""That of Inkless's remote log metadata manager."""


def schema_version(history: Iterable[tuple[Migration, bool]], schema: KnownSchema = CONTROL_PLANE) -> int:
    """The version that all migrations made, each given with whether it succeeded.

    Raises TieredctlError `control-plane-unknown`, which names the first migration that is not known.
    """
    applied = dict(history)
    for migration, succeeded in applied.items():
        if not succeeded:
            raise _unknown(schema, f"Flyway's history says that {_named(migration)} failed")
        if migration not in schema.migrations:
            raise _unknown(schema, f"migration {_named(migration)} is not one that tieredctl knows")
    version = len(applied)
    for migration in schema.migrations[:version]:
        if migration not in applied:
            raise _unknown(schema, f"migration {_named(migration)} is missing, though later ones were made")
    if version < schema.oldest:
        raise _unknown(schema, f"it is of version {version}")
    return version


def _named(migration: Migration) -> str:
    return f"{migration.script} (checksum {migration.checksum})"


def _unknown(schema: KnownSchema, why: str) -> TieredctlError:
    latest = len(schema.migrations)
    supported = f"version {latest}" if latest == schema.oldest else f"one of the versions {schema.oldest} to {latest}"
    return TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, f"{schema.name} is not {supported}: {why}")
