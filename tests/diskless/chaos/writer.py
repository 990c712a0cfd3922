"""Brokers like Inkless's beside tieredctl: they upload and commit, also what waited for long, retain and clean.

What they did is in the database that they commit to, so that it outlives a process that is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from tests.rigs.inkless import GRANTS, SCHEMA, InklessCapture
from tests.rigs.postgres import PostgresServer
from tieredctl.model.ids import uuid_text
from tieredctl.ports.object_store import RESERVED_FOLDER, WritableObjectStore

ReadUpTo = tuple[int, ...]
FOLDER = "prod/"
OWNED, DELETING, LEFT_BEHIND = 12, 2, 6
MOST_STEPS = 8
_connections: dict[tuple[int, int, str], Any] = {}
_TOPIC = "00000000-0000-4000-8000-000000000001"
_TABLES = (
    "CREATE TABLE commits (number bigserial PRIMARY KEY, key text NOT NULL, is_owned boolean NOT NULL)",
    "CREATE TABLE steps (number int PRIMARY KEY)",
    "CREATE TABLE cleaned (key text PRIMARY KEY)",
)
LATER = "interval '4 minutes'"
"""When the newest commit is: later than all uploads, and no later than clocks may differ."""
_FILE = "object_key, format, reason, state, uploader_broker_id, committed_at, marked_for_deletion_at, size"
_BATCH = (
    "magic, topic_id, partition, base_offset, last_offset, file_id, byte_offset, byte_size, timestamp_type,"
    " log_append_timestamp, batch_max_timestamp"
)


def content(key: str) -> bytes:
    """What each object holds."""
    return key.encode() * 3


def make_template(server: PostgresServer, capture: InklessCapture, database: str) -> None:
    """A database without files, of a schema that is known."""
    server.run("postgres", f"CREATE DATABASE {database}")
    server.run(database, *SCHEMA, *_TABLES, *GRANTS)
    rows = capture.tables["flyway_schema_history"]
    with server.connected(database) as connection, connection.cursor() as cursor:
        places = ", ".join(["%s"] * len(rows[0]))
        statement = f"INSERT INTO flyway_schema_history ({', '.join(rows[0])}) VALUES ({places})"
        cursor.executemany(statement, [tuple(row.values()) for row in rows])


@dataclass(frozen=True)
class Writer:
    """The brokers of one story, and what they do in it, one step after another."""

    server: PostgresServer
    database: str
    open_store: Callable[[], WritableObjectStore]
    seed: int
    lost: frozenset[str] = frozenset()
    """The keys of promised objects that somebody deleted: nobody does here."""

    @property
    def keys(self) -> list[str]:
        """Of the first objects: owned, being deleted, and left behind."""
        chance = Random(self.seed)
        return [_drawn_key(chance) for _ in range(OWNED + DELETING + LEFT_BEHIND)]

    @property
    def left_behind(self) -> list[str]:
        return self.keys[OWNED + DELETING :]

    def begin(self) -> None:
        """A bucket in which brokers left something behind, some days ago."""
        # A commit from after all uploads: without one, what has no file is not known to be left behind.
        last = _drawn_key(Random(f"{self.seed}.last"))
        store = self.open_store()
        for key in (*self.keys, last):
            store.write(key, content(key))
        columns = "topic_id, partition, topic_name, log_start_offset, high_watermark"
        marked = "now() - interval '3 days'"
        deleting = (_file(key, "deleting", marked, marked) for key in self.keys[OWNED : OWNED + DELETING])
        self._run(
            "TRUNCATE batches, files, logs, commits, steps, cleaned RESTART IDENTITY CASCADE",
            f"INSERT INTO logs ({columns}) VALUES ('{_TOPIC}', 0, 'orders', 0, 0)",
            f"INSERT INTO files ({_FILE}) VALUES {', '.join(deleting)}",
            *(statement for key in self.keys[:OWNED] for statement in _committed(key, "interval '-3 days'")),
            *_committed(last, LATER),
        )

    @property
    def is_at_rest(self) -> bool:
        return self._steps_taken() == len(self._steps())

    def act(self, _now_ms: int) -> None:
        """The next step."""
        taken, steps = self._steps_taken(), self._steps()
        if taken < len(steps):
            self._run(*steps[taken](), f"INSERT INTO steps VALUES ({taken})")

    def read_up_to(self) -> ReadUpTo:
        """How many commits there are."""
        return (self._number("SELECT coalesce(max(number), 0) FROM commits"), 0)

    def owned_objects(self, read_up_to: ReadUpTo) -> set[str]:
        """The keys that rows need after so many commits."""
        rows = self._rows(
            "SELECT key FROM (SELECT DISTINCT ON (key) key, is_owned FROM commits"
            f" WHERE number <= {read_up_to[0]} ORDER BY key, number DESC) AS last WHERE is_owned"
        )
        return {key for (key,) in rows}

    def cleaned(self) -> set[str]:
        """What brokers deleted themselves."""
        return {key for (key,) in self._rows("SELECT key FROM cleaned")}

    def read(self, key: str) -> bytes | None:
        """What the bucket has under a key."""
        store = self.open_store()
        return None if store.head(key) is None else store.read(key)

    def stored_keys(self) -> set[str]:
        """All in the bucket but tieredctl's own."""
        return {one.key for one in self.open_store().list() if not one.key.startswith(RESERVED_FOLDER)}

    def _steps(self) -> list[Callable[[], tuple[str, ...]]]:
        chance = Random(self.seed + 1)
        late = chance.sample(self.left_behind, 3)
        choices: list[Callable[[], tuple[str, ...]]] = [
            *(lambda key=key: _committed(key, "interval '0'") for key in late),
            *(lambda number=number: self._uploaded(number) for number in range(2)),
            self._cleaned,
            lambda: _expired(self.keys[0]),
        ]
        chance.shuffle(choices)
        return choices[: chance.randint(0, len(choices))]

    def _uploaded(self, number: int) -> tuple[str, ...]:
        key = _drawn_key(Random(f"{self.seed}.{number}"))
        self.open_store().write(key, content(key))
        return _committed(key, "interval '0'")

    def _cleaned(self) -> tuple[str, ...]:
        """A broker deletes an object that is marked, and then its row."""
        key = self.keys[OWNED]
        store = self.open_store()
        stored = store.head(key)
        if stored is not None:
            store.delete([stored])
        return f"DELETE FROM files WHERE object_key = '{key}'", f"INSERT INTO cleaned VALUES ('{key}')"

    def _steps_taken(self) -> int:
        return self._number("SELECT count(*) FROM steps")

    def _number(self, statement: str) -> int:
        ((number,),) = self._rows(statement)
        return int(number)

    def _rows(self, statement: str) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = self._connection().execute(statement).fetchall()
        return rows

    def _run(self, *statements: str) -> None:
        """In one transaction."""
        connection = self._connection()
        with connection.transaction():
            for statement in statements:
                connection.execute(statement)

    def _connection(self) -> Any:
        """This process's own, made again where the server was restarted."""
        owner = os.getpid(), self.server.port, self.database
        found = _connections.get(owner)
        if found is None or found.broken:
            found = _connections[owner] = self.server.connected(self.database)
        return found


def _drawn_key(chance: Random) -> str:
    return FOLDER + uuid_text(UUID(int=chance.getrandbits(128), version=4).bytes)


def _file(key: str, state: str, committed: str, marked: str = "NULL") -> str:
    return f"('{key}', 1, 'produce', '{state}', 1, {committed}, {marked}, {len(content(key))})"


def _committed(key: str, later: str) -> tuple[str, ...]:
    """A file with a batch, which gets the next offset."""
    size = len(content(key))
    file = f"(SELECT file_id FROM files WHERE object_key = '{key}')"
    place = "topic_id, partition, high_watermark, high_watermark"
    return (
        f"INSERT INTO files ({_FILE}) VALUES {_file(key, 'uploaded', f'now() + {later}')}",
        f"INSERT INTO batches ({_BATCH}) SELECT 2, {place}, {file}, 0, {size}, 0, 0, 0 FROM logs",
        f"UPDATE logs SET high_watermark = high_watermark + 1, byte_size = byte_size + {size}",
        f"INSERT INTO commits (key, is_owned) VALUES ('{key}', true)",
    )


def _expired(key: str) -> tuple[str, ...]:
    """Retention deletes the first batch, and marks its file."""
    return (
        f"DELETE FROM batches WHERE file_id = (SELECT file_id FROM files WHERE object_key = '{key}')",
        f"UPDATE files SET state = 'deleting', marked_for_deletion_at = now() WHERE object_key = '{key}'",
        f"UPDATE logs SET log_start_offset = log_start_offset + 1, byte_size = byte_size - {len(content(key))}",
        f"INSERT INTO commits (key, is_owned) VALUES ('{key}', false)",
    )
