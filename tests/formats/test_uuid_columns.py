"""Ids as columns of numbers are the ids that they were made of, and are found and grouped as such."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.formats.digit_columns import numbers_in_digits
from tieredctl.formats.uuid_columns import NOT_FOUND, UuidColumns, UuidLookup, grouped, uuid_columns, uuids_in_text
from tieredctl.model.ids import UUID_BYTES, UUID_CHARACTERS, uuid_bytes, uuid_text

FOLD = 0x9E3779B97F4A7C15
HALF = 1 << 64


def of_one_hash(number: int) -> bytes:
    """Ids whose hashes are all the same."""
    return (number * FOLD % HALF).to_bytes(8) + number.to_bytes(8)


IDS = st.lists(
    st.one_of(st.binary(min_size=16, max_size=16), st.integers(0, 5).map(of_one_hash), st.just(bytes(16))), max_size=30
)


def columns(ids: list[bytes]) -> UuidColumns:
    return uuid_columns(np.frombuffer(b"".join(ids), np.dtype((np.void, UUID_BYTES))))


def is_id(text: str) -> bool:
    try:
        uuid_bytes(text)
    except ValueError:
        return False
    return True


def test_the_ids_of_one_hash_have_one() -> None:
    hashes = columns([of_one_hash(number) for number in range(5)]).hashes()
    assert len(set(hashes.tolist())) == 1


@given(IDS)
def test_an_id_is_printed_and_read_as_one_alone(ids: list[bytes]) -> None:
    texts = columns(ids).texts()
    read, valid = uuids_in_text(np.frombuffer("".join(texts).encode(), np.uint8).reshape(-1, UUID_CHARACTERS))

    assert texts == [uuid_text(one) for one in ids]
    assert valid.all()
    assert [read.bytes_of(row) for row in range(len(ids))] == ids


@given(st.text("AQgwZ-_09/+=", min_size=22, max_size=22))
def test_what_is_not_an_id_is_refused(text: str) -> None:
    _, valid = uuids_in_text(np.frombuffer(text.encode(), np.uint8).reshape(1, -1))
    assert valid.tolist() == [is_id(text)]


@given(IDS)
def test_equal_ids_stand_together_in_their_order(ids: list[bytes]) -> None:
    order, sorted_ids = grouped(columns(ids))

    rows = order.tolist()
    assert sorted(rows) == list(range(len(ids)))
    assert [sorted_ids.bytes_of(place) for place in range(len(ids))] == [ids[row] for row in rows]
    assert sorted_ids.changes().sum() == len(set(ids))
    for one in set(ids):
        of_one = [row for row in rows if ids[row] == one]
        assert of_one == sorted(of_one)


@given(IDS, IDS)
def test_every_id_is_found_and_no_other(ids: list[bytes], wanted: list[bytes]) -> None:
    known = list(dict.fromkeys(ids))
    wanted = [*wanted, *known]

    rows = UuidLookup(columns(known)).rows_of(columns(wanted))

    assert rows.tolist() == [known.index(one) if one in known else NOT_FOUND for one in wanted]


@given(st.one_of(st.integers(0, 10**20 - 1).map("{:020}".format), st.text("0159 -x/:", min_size=20, max_size=20)))
def test_twenty_digits_are_a_number_if_it_fits(text: str) -> None:
    numbers, fit = numbers_in_digits(np.frombuffer(text.encode(), np.uint8).reshape(1, -1))

    assert fit.tolist() == [text.isdigit() and int(text) < 922337203 * 10**10]
    assert numbers.tolist() == [int(text) if fit[0] else 0]
