"""A role to which the database shows less than there is: what it does not see would look orphaned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import READER, Inkless

Hiding = Callable[[Inkless], None]
_COMMANDS = [("status",), ("verify",), ("orphans", "scan", "--min-age", "1h")]


def by_policy(inkless: Inkless) -> None:
    """The role sees one topic, as if there were no other: nothing contradicts that."""
    of_one_topic = "USING (topic_id = (SELECT min(topic_id::text)::uuid FROM logs_of_all))"
    inkless.run(
        *(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY" for table in ("files", "batches", "logs")),
        "CREATE TABLE logs_of_all AS SELECT * FROM logs",
        "GRANT SELECT ON logs_of_all TO PUBLIC",
        f"CREATE POLICY one_topic ON batches FOR SELECT {of_one_topic}",
        f"CREATE POLICY one_topic ON logs FOR SELECT {of_one_topic}",
        "CREATE POLICY one_topic ON files FOR SELECT USING (file_id IN (SELECT file_id FROM batches))",
    )


def by_view(inkless: Inkless) -> None:
    inkless.run(
        "ALTER TABLE files RENAME TO all_files",
        "CREATE VIEW files AS SELECT * FROM all_files WHERE file_id % 2 = 0",
        f"GRANT SELECT ON files TO {READER}",
    )


def by_schema_of_the_role(inkless: Inkless) -> None:
    """`search_path` begins with the schema that has the role's name."""
    inkless.run(
        f"CREATE SCHEMA {READER} AUTHORIZATION {READER}",
        f"CREATE TABLE {READER}.files (LIKE public.files INCLUDING ALL)",
        f"GRANT SELECT ON {READER}.files TO {READER}",
    )


@pytest.mark.parametrize("hide", [by_policy, by_view, by_schema_of_the_role])
def test_a_control_plane_that_may_hide_rows_is_refused(
    inkless_alone: Inkless, tieredctl: Tieredctl, hide: Hiding
) -> None:
    hide(inkless_alone)

    outcomes = [tieredctl("diskless", *command, *inkless_alone.places) for command in _COMMANDS]

    assert [outcome.exit_code in (1, 5) for outcome in outcomes] == [True] * len(outcomes), outcomes
    assert not any("orphan" in outcome.out for outcome in outcomes)
    assert all("files" in outcome.err for outcome in outcomes)
