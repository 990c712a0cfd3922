"""Rows that are declared once: their names in JSON and CSV, and what tables show of them, follow."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Annotated

from tieredctl.cli.output import OutputFormat, render
from tieredctl.cli.result_listing import columns_of, result_listing
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, SizeOrUnknown, Wide


@dataclass(frozen=True, slots=True)
class Row(ResultRow):
    topic: str
    topic_id: Wide[str]
    bytes: Size[int | None]
    local_bytes: SizeOrUnknown
    from_: Annotated[str, Column("ORIGIN", after="topic")]
    evidence: JsonOnly[dict[str, int]]


@dataclass(frozen=True, slots=True)
class Removed(Row):
    removed: bool


ROW = Row("orders", "id", None, None, "context", {"at": 7})


def shown(output: OutputFormat, *rows: Row, row: type[Row] = Row) -> list[str]:
    out = io.StringIO()
    render(result_listing("Rows", {}, row, rows, {}), output, out)
    return out.getvalue().splitlines()


def test_names_in_json_and_the_header_of_csv_are_the_attributes_in_camel_case_in_their_order() -> None:
    assert shown(OutputFormat.CSV) == ["topic,topicId,bytes,localBytes,from,evidence"]
    (line,) = shown(OutputFormat.JSONL, ROW)
    assert list(json.loads(line)) == ["topic", "topicId", "bytes", "localBytes", "from", "evidence"]


def test_a_table_has_wide_columns_last_and_those_of_a_subclass_after_them() -> None:
    removed = ROW.extended(Removed, removed=True)

    assert shown(OutputFormat.TABLE, ROW)[0].split() == ["TOPIC", "ORIGIN", "SIZE", "SIZE"]
    assert shown(OutputFormat.WIDE, removed, row=Removed)[0].split()[-2:] == ["TOPIC-ID", "REMOVED"]


def test_what_is_not_known_is_told_apart_from_what_does_not_exist() -> None:
    assert shown(OutputFormat.TABLE, ROW)[1].split() == ["orders", "context", "-", "unknown"]


def test_a_command_may_make_the_text_of_a_column_from_the_whole_row() -> None:
    first, *_ = columns_of(Row, topic=lambda item: f"{item['topic']} of {item['from']}")

    assert (first.heading, first.text(ROW.document())) == ("TOPIC", "orders of context")
