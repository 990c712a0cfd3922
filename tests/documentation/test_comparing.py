"""How a page's output is compared: exactly, or alike where a cluster lived another life."""

from __future__ import annotations

import pytest

from tests.documentation.comparing import shows, shows_alike

FIRST, SECOND = "zYJ8cWbWS6Wrn_UH97CRKw", "V_QmtSRAS-qC_YrVmRd2HA"


@pytest.mark.parametrize(
    ("said", "printed", "is_shown"),
    [
        (["a  1"], ["a  1"], True),
        (["a  1"], ["a  2"], False),
        (["a  1"], ["a   1"], False),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a…z"], ["abcz"], True),
        (["a…"], ["b"], False),
        (["a", "…", "d"], ["a", "b", "c", "d"], True),
        (["a", "…", "d"], ["a", "d"], True),
        (["a", "…"], ["b"], False),
        (["(a|b)"], ["a"], False),
    ],
)
def test_exactly(said: list[str], printed: list[str], is_shown: bool) -> None:
    assert shows(said, printed) is is_shown


@pytest.mark.parametrize(
    ("said", "printed", "is_shown"),
    [
        (["      45  2.7 KiB"], ["  112  3 B"], True),
        (["45 objects"], ["x objects"], False),
        (["45 objects"], ["45 segments"], False),
        ([f"{FIRST} of {FIRST}"], [f"{SECOND} of {SECOND}"], True),
        ([f"{FIRST} of {FIRST}"], [f"{SECOND} of {FIRST}"], False),
        ([f"id {FIRST}"], ["id none"], False),
    ],
)
def test_alike(said: list[str], printed: list[str], is_shown: bool) -> None:
    assert shows_alike(said, printed, {}) is is_shown


def test_an_id_stays_what_it_was_found_to_be() -> None:
    ids: dict[str, str] = {}

    assert shows_alike([f"copied {FIRST}"], [f"copied {SECOND}"], ids)
    assert ids == {FIRST: SECOND}
    assert not shows_alike([f"deleted {FIRST}"], [f"deleted {FIRST}"], ids)
