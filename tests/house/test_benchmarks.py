"""The benchmarks' own command line, and what they measure with."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from benchmarks.listed_store import ListedStore

ROOT = Path(__file__).parents[2]
SUITES = ["decode", "verify", "start", "memory", "orphans", "listing", "replay", "snapshot"]
KEYS = ["a", "a/1", "a/10", "a/2", "ab/1", "b/1"]


def benchmarks(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def store(tmp_path: Path) -> ListedStore:
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{key}\n" for key in KEYS))
    return ListedStore(str(keys))


@pytest.mark.parametrize("words", [["--help"], ["orphans", "--help"]], ids=" ".join)
def test_the_suites_are_named_on_request(words: list[str]) -> None:
    ended = benchmarks(*words)

    assert ended.returncode == 0
    assert [suite for suite in SUITES if f"\n  {suite} " in ended.stdout] == SUITES


def test_the_scale_of_a_store_is_asked_for_by_options() -> None:
    command = [sys.executable, "-m", "benchmarks.scale", "--help"]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert ended.returncode == 0
    assert "--objects" in ended.stdout
    assert "--skew" in ended.stdout


def test_a_suite_that_does_not_exist_is_a_usage_error() -> None:
    ended = benchmarks("sorting")

    assert ended.returncode == 2
    assert "sorting" in ended.stderr


def test_a_list_of_keys_is_listed_as_a_store_is(store: ListedStore) -> None:
    prefixes, starts = ("", "a", "a/1", "a/2", "b/1", "c"), ("", "a", "a/1", "a/11", "zz")
    for prefix, start_after in product(prefixes, starts):
        listed = [stored.key for stored in store.list(prefix, start_after)]

        expected = [key for key in KEYS if key.startswith(prefix) and key > start_after]
        assert listed == expected, (prefix, start_after)


def test_a_key_that_is_not_in_the_list_names_no_object(store: ListedStore) -> None:
    assert store.head("a/1") is not None
    assert store.head("a/") is None
