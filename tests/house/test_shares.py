"""Of the exhaustive tests a run does one share, told by its words alone; all shares together are the whole set."""

from __future__ import annotations

import pytest

from tests.shares import VARIABLE, Share, divided

pytest_plugins = ["pytester"]

CASES, TOGETHER = 40, 9
SOURCE = f"""
import pytest

@pytest.mark.exhaustive
@pytest.mark.parametrize("case", range({CASES}))
def test_a_case(case): pass

@pytest.mark.exhaustive("a set")
@pytest.mark.parametrize("case", range({TOGETHER}))
def test_of_a_set(case): pass

def test_always(): pass
"""


def passed(pytester: pytest.Pytester) -> set[str]:
    """The tests that a run of the test file did, by name."""
    recorder = pytester.inline_run("-p", "tests.shares")
    return {report.nodeid for report in recorder.getreports("pytest_runtest_logreport") if report.when == "call"}


@pytest.fixture
def tests_of(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nmarkers = exhaustive: tries every case\n")
    pytester.makepyfile(SOURCE)
    return pytester


def test_shares_are_disjoint_and_together_the_whole(tests_of: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    whole = passed(tests_of)
    shares = []
    for number in (1, 2, 3):
        monkeypatch.setenv(VARIABLE, f"{number}/3")
        shares.append(passed(tests_of))

    always = set.intersection(*shares)
    exhaustive = [share - always for share in shares]
    assert len(whole) == CASES + TOGETHER + 1
    assert len(always) == 1
    assert set.union(*shares) == whole
    assert sum(map(len, exhaustive)) == CASES + TOGETHER
    assert {sum("of_a_set" in name for name in share) for share in shares} == {0, TOGETHER}
    assert all(exhaustive)


@pytest.mark.parametrize("count", [0, 1, 5, 8, 100])
def test_cases_are_divided_among_shares_and_none_has_nothing_to_do(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert divided(range(count)) == range(count)
    shares = []
    for number in range(1, 9):
        monkeypatch.setenv(VARIABLE, f"{number}/8")
        shares.append(list(divided(range(count))))

    assert {case for share in shares for case in share} == set(range(count))
    assert sum(map(len, shares)) == (max(count, 8) if count else 0)
    assert all(share == sorted(share) for share in shares)


def test_a_run_names_its_share_and_what_repeats_it(tests_of: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2/3")

    result = tests_of.runpytest_inprocess("-p", "tests.shares")

    result.stdout.fnmatch_lines(["*make exhaustive SHARE=2/3*"])


def test_what_is_no_share_is_refused() -> None:
    for text in ("0/4", "5/4", "4", "a/b"):
        with pytest.raises(ValueError, match=r"share|int|unpack"):
            Share(text)
