"""Names are whatever somebody gave: none of them acts on a terminal, a spreadsheet or a log."""

from __future__ import annotations

import csv
import io
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import environment, own_process
from tests.metadata_logs import PARTITION, started, write_events
from tieredctl.cli.output import Listing, OutputFormat, render

TOPIC = "a\x1b[2Jtopic\r\nRemoteLogSegmentMetadata{forged}\x9b31m"
"""Clears the screen, and pretends to be another event."""


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_events(tmp_path, started(1, 0, 9, partition=replace(PARTITION, topic=TOPIC)))
    return tmp_path


def on_a_terminal(*words: str | Path) -> bytes:
    """What a terminal is sent."""
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "tieredctl", *map(str, words)]
    subprocess.run(command, stdout=its_end, stderr=its_end, env=environment(), timeout=60, check=False)
    os.close(its_end)
    sent = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            sent += piece
    except OSError:  # nobody writes to it any more
        pass
    os.close(terminal)
    return sent


LESS_OFTEN = [("format", "--style", "kip405"), ("format", "-o", "table"), ("segments",), ("stuck",), ("stats",)]


@pytest.mark.parametrize(
    "words", [("format",), *(pytest.param(words, marks=pytest.mark.exhaustive) for words in LESS_OFTEN)], ids=" ".join
)
def test_a_terminal_is_sent_no_control_characters(log_dir: Path, words: tuple[str, ...]) -> None:
    sent = on_a_terminal("metadata", *words, "--log-dir", log_dir)

    assert sent
    assert not any(byte in sent for byte in (b"\x1b", b"\x9b31m", b"\xc2\x9b"))
    assert not any(line.startswith(b"RemoteLogSegmentMetadata{forged}") for line in sent.splitlines())


@pytest.mark.parametrize("style", ["kafka", "kip405"])
def test_a_pipe_is_sent_what_kafka_prints(log_dir: Path, style: str) -> None:
    outcome = own_process("metadata", "format", "--style", style, "--log-dir", log_dir)

    assert TOPIC.replace("\r\n", "\n") in outcome.out  # as text is read from a pipe


def csv_of(value: object) -> object:
    out = io.StringIO(newline="")
    render(Listing("Kind", {}, [{"field": value}], (), {}, ("field",)), OutputFormat.CSV, out)
    return list(csv.reader(io.StringIO(out.getvalue())))[1][0]


def test_no_cell_of_csv_is_a_formula_nor_begins_with_what_a_spreadsheet_passes_over() -> None:
    for start in ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"):
        assert csv_of(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0", start
    for start in ("\t", "\r", "\n"):
        assert not str(csv_of(f"{start}=1")).startswith((start, "=")), repr(start)


def test_numbers_and_ids_are_cells_as_they_are() -> None:
    for value in (-1, -1.5, "-1", "-1.5", "-8cWbWS6Wrn_UH97CRKwzY", "orders-1", "a=b", None):
        assert csv_of(value) == ("" if value is None else str(value)), value
