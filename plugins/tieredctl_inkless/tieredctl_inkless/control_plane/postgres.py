"""Inkless's control plane, read from PostgreSQL: one moment at a time, in transactions that can change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.model.counted import counted
from tieredctl.model.ids import TopicIdPartition
from tieredctl.process.tracing import traced
from tieredctl_inkless.control_plane import queries, remote_log_metadata
from tieredctl_inkless.control_plane.connection import ASKER, SERVER, connected
from tieredctl_inkless.control_plane.copied_columns import (
    Column,
    copy_statement,
    read_columns,
    read_texts,
    text_statement,
)
from tieredctl_inkless.control_plane.migrations import Migration, schema_version
from tieredctl_inkless.diskless.control_plane import (
    ControlPlaneTables,
    FileState,
    FoundBatch,
    FoundFile,
    FoundFiles,
    FoundLog,
    FoundSegment,
    FoundStates,
)

Row = Mapping[str, Any]
_TABLES = ("files", "batches", "logs", "producer_state", "flyway_schema_history")
_LONGEST_QUESTION = 100
_STORED_HERE = ("r", "p")
"""What PostgreSQL calls tables, and partitioned ones; others are views, or tables of another server."""


@dataclass(frozen=True, slots=True)
class PostgresControlPlane:
    """A `ControlPlane`. Each question has its own connection, so that no transaction stays open."""

    conninfo: str
    """A libpq URI or connection string, without a password."""

    def describe(self) -> Mapping[str, Any]:
        with self._moment() as moment:
            return moment.describe()

    def tables(self) -> ControlPlaneTables:
        with self._moment() as moment:
            return ControlPlaneTables(
                moment.version,
                moment.clock_ms(),
                moment.table(queries.file_columns(), queries.ALL_FILES),
                moment.table(queries.batch_columns(), queries.ALL_BATCHES),
                moment.table(queries.log_columns(moment.version), queries.ALL_LOGS),
                moment.table(queries.producer_columns(), queries.ALL_PRODUCERS),
                moment.is_standby(),
                moment.made_ms(),
            )

    def batches_of(self, object_key: str) -> tuple[Row, pa.Table] | None:
        with self._moment() as moment:
            columns, is_possible = queries.file_columns(), _is_possible(object_key)
            files = moment.rows(columns, queries.FILE_OF_KEY, key=object_key) if is_possible else []
            if not files:
                return None
            columns = queries.batch_columns(with_topic=True)
            return files[0], moment.table(columns, queries.BATCHES_OF_FILE, file=files[0]["fileId"])

    def logs_of(self, topic: str, partition: int, offset: int) -> Sequence[FoundLog]:
        with self._moment() as moment:
            columns, is_possible = queries.log_columns(moment.version), _is_possible(topic)
            place = {"topic": topic, "partition": partition}
            logs = moment.rows(columns, queries.LOGS_OF_NAME, **place) if is_possible else []
            return [FoundLog(log, _batch_of(moment, log, offset)) for log in logs]

    def files_of(self, object_keys: Sequence[str]) -> FoundFiles:
        possible = [key for key in object_keys if _is_possible(key)]
        with self._moment() as moment:
            rows = moment.ask(queries.FILES_OF_KEYS, keys=possible)
            ((newest_commit_ms,),) = moment.ask(queries.NEWEST_COMMIT)
            ((lacks_files,),) = moment.ask(queries.LACKS_FILES)
            is_standby = moment.is_standby()
            return FoundFiles(
                moment.clock_ms(),
                {key: FoundFile(file_id, FileState(state), *facts) for key, file_id, state, *facts in rows},
                newest_commit_ms,
                lacks_files,
                None if is_standby else moment.database(),
                0 if is_standby else moment.written(),
                moment.made_ms(),
            )

    def states_of(self, object_keys: Sequence[str]) -> FoundStates:
        possible = [key for key in object_keys if _is_possible(key)]
        with self._moment() as moment:
            rows = moment.ask(queries.STATES_OF_KEYS, keys=possible)
            return FoundStates({key: FileState(state) for key, state in rows}, moment.is_standby())

    def segment_of(self, partition: TopicIdPartition, offset: int) -> FoundSegment | None:
        with self._moment() as moment:
            if not remote_log_metadata.is_kept_here(moment.ask):
                return None
            return FoundSegment(remote_log_metadata.segment_of(moment.ask, partition, offset))

    @contextmanager
    def _moment(self) -> Iterator[_Moment]:
        with connected(self.conninfo) as connection:
            yield _Moment(connection)


class _Moment:
    """A transaction, which sees the control plane as it was when the first question was asked."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.execute(queries.ALL_ROWS)
        self._demand_own_tables()
        history = self.ask(queries.HISTORY)
        self.version = schema_version(
            (Migration(version, script, checksum), success) for version, script, checksum, success in history
        )
        self._demand_columns()
        ((is_subscribed,),) = self.ask(queries.IS_SUBSCRIBED)
        if is_subscribed:
            message = (
                "The database is a logical replica: its tables may be of different moments, and how late they are "
            )
            message += "is not known."
            hint = "Give --control-plane the database that brokers commit to, or a physical standby of it."
            raise TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message, hint=hint)

    def _demand_own_tables(self) -> None:
        """Raises TieredctlError `control-plane-unknown` where a name may mean less than what brokers write to."""
        tables = self.ask(queries.TABLES, names=[*_TABLES])
        schemas = {schema for _, _, schema in tables}
        for name, kind, schema in tables:
            if kind not in _STORED_HERE:
                message = f"{schema}.{name} is not a table: it may not have all rows."
                hint = "Give --control-plane the database and the schema that brokers commit to."
                raise TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message, hint=hint)
        if len(schemas) > 1:
            named = ", ".join(sorted(f"{schema}.{name}" for name, _, schema in tables))
            message = f"The search_path leads to tables of several schemas: {named}."
            hint = "Name the control plane's schema: ?options=-c%20search_path%3DNAME"
            raise TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message, hint=hint)
        if hidden := sorted(name for (name,) in self.ask(queries.HIDDEN, names=[name for name, _, _ in tables])):
            message = f"The control plane refuses: a policy of row-level security may hide rows of {', '.join(hidden)}."
            hint = "Give the role BYPASSRLS, or a policy that applies to others only."
            raise TieredctlError(ErrorCode.CONTROL_PLANE_REFUSED, message, hint=hint)

    def _demand_columns(self) -> None:
        """Raises TieredctlError `control-plane-unknown` where the tables are not those that its history tells of."""
        there = set(self.ask(queries.COLUMNS, names=[*_TABLES]))
        for table, column in queries.demanded_columns(self.version):
            if (table, column) not in there:
                message = f"The database is not a control plane that tieredctl knows: it has no {table}.{column}."
                raise TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message)

    def describe(self) -> Row:
        info = self._connection.info
        return {
            "controlPlane": "postgresql",
            "host": info.host,
            "port": info.port,
            "database": info.dbname,
            "schemaVersion": self.version,
        }

    def clock_ms(self) -> int:
        ((now_ms,),) = self.ask(queries.CLOCK)
        return int(now_ms)

    def made_ms(self) -> int:
        """When the schema was made, at the latest."""
        ((made_ms,),) = self.ask(queries.MADE)
        return int(made_ms)

    def database(self) -> str:
        """The identity of the database, its tables and its timeline. Do not ask a standby."""
        ((name,),) = self.ask(queries.DATABASE)
        return str(name)

    def written(self) -> int:
        """The end of the write-ahead log. Do not ask a standby."""
        ((count,),) = self.ask(queries.WRITTEN)
        return int(count)

    def is_standby(self) -> bool:
        ((answer,),) = self.ask(queries.IS_STANDBY)
        return bool(answer)

    def ask(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a query that has few."""
        with traced(ASKER, SERVER, _short(statement)) as asked:
            rows: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
            asked.answer = counted(len(rows), "row")
        return rows

    def rows(self, columns: Sequence[Column], rest: str, **values: object) -> list[dict[str, Any]]:
        """The same, by the columns' names."""
        rows: list[dict[str, Any]] = self.table(columns, rest, **values).to_pylist()
        return rows

    def table(self, columns: Sequence[Column], rest: str, **values: object) -> pa.Table:
        """The rows of a query, as columns."""
        with traced(ASKER, SERVER, _short(rest)) as asked, self._connection.cursor() as cursor:
            with cursor.copy(copy_statement(columns, rest), values) as copied:
                table = read_columns(copied, columns)
            for number, column in enumerate(columns):
                if column.kind == pa.string():
                    lengths = numbers_in(table.column(number).combine_chunks()).astype("int64")
                    with cursor.copy(text_statement(column, rest), values) as copied:
                        table = table.set_column(number, column.name, read_texts(copied, lengths))
            asked.answer = counted(table.num_rows, "row")
        return table


def _batch_of(moment: _Moment, log: Row, offset: int) -> FoundBatch | None:
    place = {"topic_id": log["topicId"].hex(), "partition": log["partition"], "offset": offset}
    batches = moment.rows(queries.batch_columns(), queries.BATCH_OF_OFFSET, **place)
    if not batches or batches[0]["baseOffset"] > offset:
        return None
    file = batches[0]["fileId"]
    files = moment.rows(queries.file_columns(), queries.FILE_OF_ID, file=file)
    ((partitions,),) = moment.ask(queries.PARTITIONS_OF_FILE, file=file)
    return FoundBatch(batches[0], files[0] if files else {}, partitions - 1)


def _short(statement: str) -> str:
    """What a log says of a statement; what it asks about is not in it."""
    return shorten(statement, _LONGEST_QUESTION, placeholder=" …")


def _is_possible(text: str) -> bool:
    """Whether PostgreSQL can hold it: neither NUL nor what UTF-8 cannot tell."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in text
