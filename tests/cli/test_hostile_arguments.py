"""What is typed wrong is refused before anything is looked at: a sentence, a hint, exit 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import copied, write_events

DIGITS = "9" * 5000
DASHED_ID = "-x-aw3fEQIi3do0H9Y7cKQ"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with one segment of t-0."""
    write_events(tmp_path, *copied(1, 0, 9))
    return tmp_path


REFUSED: list[tuple[str, ...]] = [
    ("segments", "--topic-id", "short"),
    ("segments", "--segment-id", ""),
    ("history", "AAAA"),
    ("segments", "--partition", "2147483648"),
    ("lookup", "t:0", "--epoch", "0", "--offset", "9223372036854775808"),
    ("lookup", "t:0", "--epoch", "2147483648", "--offset", "0"),
    ("lookup", "t:2147483648", "--epoch", "0", "--offset", "0"),
    ("lookup", f"t:{DIGITS}", "--epoch", "0", "--offset", "0"),
    ("stuck", "--older-than", f"{DIGITS}d"),
    ("stuck", "--now", DIGITS),
    ("segments", "--as-of", "/no/such"),
    ("segments", "--as-of", DIGITS),
    ("segments", "--export", ""),
    ("segments", "--log-dir", ""),
    ("format", "--property", "print.partition=true"),
    ("segments", "--command-config", "/no"),
    ("stuck", "--topic", "typo"),
    ("stuck", "--topic", "t", "--partition", "7"),
    ("partition-of", DASHED_ID, "0", "--bogus"),
    *(
        ("segments", "--bootstrap-server", server)
        for server in ("broker", "broker:", ":9092", "broker:0", "broker:99999", "http://b:1", "a:1,b", "")
    ),
]
SOURCES = {"--export", "--log-dir", "--bootstrap-server", "partition-of"}


def test_a_value_that_cannot_be_is_refused(
    log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_dir)  # a path from a variable that is not set is not the current folder
    for words in REFUSED:
        outcome = tieredctl("metadata", *words, *(() if SOURCES & {*words} else ("--log-dir", log_dir)))

        case = " ".join(words)[:60]
        assert (outcome.exit_code, outcome.out, outcome.err.count("\n")) == (2, "", 2), (case, outcome.err)
    for url in ("file://host/folder", "s3:/x", "foo:bar", "/tmp", ""):
        assert tieredctl("remote", "ls", "--store", url)[:2] == (2, ""), url


def test_an_id_may_begin_with_a_dash(tieredctl: Tieredctl) -> None:
    for words in (
        (DASHED_ID, "0"),
        (f"{DASHED_ID}:0",),
        ("--", DASHED_ID, "0"),
        ("-o", "table", DASHED_ID, "0"),
        (DASHED_ID, "--metadata-partitions=50", "0", "-o", "table"),
    ):
        assert tieredctl("metadata", "partition-of", *words) == (0, "20\n", ""), words
