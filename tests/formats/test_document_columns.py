"""Documents made as columns are those of their values, and their text is to the byte what `json.dumps` makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.formats import document_columns
from tieredctl.formats.document_columns import Choices, Chosen, DocumentColumns, Ids, Listed, Numbers, PlainTexts
from tieredctl.formats.uuid_columns import uuid_columns
from tieredctl.model.ids import UUID_BYTES, uuid_text

NAMES = ["brokerId", 'leader"\nEpoch']
CHOICES = [1, -1, None, True, "", 'a"b\\/', "\x00\x1f\x7f\u2028é😀\ud800</", "é" * 300, {"a": [1.5, "\n"]}]
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Row:
    """What a document is made of."""

    name: int
    number: int
    small: int
    flag: bool
    choice: int
    identity: bytes
    text: str | None
    pairs: list[tuple[int, int]]

    @property
    def document(self) -> dict[str, Any]:
        return {
            "choice": CHOICES[self.choice],
            NAMES[self.name]: self.number,
            "small": self.small,
            "flag": self.flag,
            "id": uuid_text(self.identity),
            "text": self.text,
            "pairs": [{"first": first, "second": second} for first, second in self.pairs],
        }


ROW = st.builds(
    Row,
    st.integers(0, 1),
    LONGS,
    st.integers(-(1 << 7), (1 << 7) - 1),
    st.booleans(),
    st.integers(0, len(CHOICES) - 1),
    st.binary(min_size=UUID_BYTES, max_size=UUID_BYTES),
    st.none() | st.text("Az09+/=", max_size=6),
    st.lists(st.tuples(st.integers(0, 1), LONGS), max_size=3),
)
ROWS = st.lists(ROW, max_size=8) | st.builds(lambda row, count: [row] * count, ROW, st.integers(1, 4))


def columns_of(rows: Sequence[Row]) -> DocumentColumns:
    pairs = [pair for row in rows for pair in row.pairs]
    first, second = (Numbers(np.array([pair[place] for pair in pairs], np.int64)) for place in (0, 1))
    elements = DocumentColumns(len(pairs), [("first", first), ("second", second)])
    ids = uuid_columns(np.frombuffer(b"".join(row.identity for row in rows), np.dtype((np.void, UUID_BYTES))))
    names = Chosen(np.array([row.name for row in rows], np.int8), Choices(NAMES))
    return DocumentColumns(
        len(rows),
        [
            ("choice", Chosen(np.array([row.choice for row in rows], np.int32), Choices(CHOICES))),
            (names, Numbers(np.array([row.number for row in rows], np.int64))),
            ("small", Numbers(np.array([row.small for row in rows], np.int8))),
            ("flag", Chosen(np.array([row.flag for row in rows], np.bool_), Choices([False, True]))),
            ("id", Ids(ids)),
            ("text", PlainTexts([row.text for row in rows])),
            ("pairs", Listed(np.cumsum([0, *(len(row.pairs) for row in rows)]), elements)),
        ],
    )


@given(ROWS)
def test_the_values(rows: list[Row]) -> None:
    documents = list(columns_of(rows).documents())

    assert documents == [row.document for row in rows]
    assert [list(document) for document in documents] == [list(row.document) for row in rows]


@pytest.mark.parametrize("at_once", [document_columns._MOST_BYTES_AT_ONCE, 0], ids=["at once", "one by one"])
@given(rows=ROWS)
def test_the_text(rows: list[Row], at_once: int) -> None:
    with patch("tieredctl.formats.document_columns._MOST_BYTES_AT_ONCE", at_once):
        text = "".join(columns_of(rows).json_lines())

    assert text == "".join(json.dumps(row.document) + "\n" for row in rows)


@given(ROWS)
def test_a_bound_of_what_it_takes(rows: list[Row]) -> None:
    assert columns_of(rows).most_bytes() >= sum(len(json.dumps(row.document)) for row in rows)
