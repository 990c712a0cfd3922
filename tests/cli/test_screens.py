"""Screens as they are seen: at 80 and 200 columns, narrow, without colours, in a C locale. New ones are written with
SCREENS=write; they are read before they are kept."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.terminal_screen import C_LOCALE, FOLDER, ROWS, WIDTH, rows, screen, screen_of_this_process
from tests.faults.lost_partition import lose_a_metadata_partition

STORE = ("--store", "file:remote/kafka-tiered-storage")
DATA = ("--log-dir", "data")
NOW = ("--now", "2026-12-01")
STUCK = ("metadata", "stuck", *DATA, *NOW)
ORPHANS = ("orphans", "scan", *DATA)
DOCTOR = ("doctor", "--kraft-snapshot", "data/__cluster_metadata-0", *DATA)
VERIFY = ("verify", *DATA, *STORE)
HOURS_AGO = 75
SOUND = {
    "status": ("status", *DATA, *STORE),
    "metadata-segments": ("metadata", "segments", *DATA, "--topic", "slow7"),
    "metadata-epochs": ("metadata", "epochs", *DATA, "orders7:0"),
    "doctor": DOCTOR,
    "remote-ls": ("remote", "ls", *STORE, "--topic", "slow7"),
    "remote-du": ("remote", "du", *STORE),
    "explain": ("explain", "orders7:0@40", *DATA, *STORE),
    "remote-records": (
        "remote",
        "records",
        "orders7:0",
        *DATA,
        *STORE,
        "--from",
        "2026-11-21T09:13:55Z",
        "--max-records",
        "4",
    ),
    "help": ("metadata", "lookup", "--help"),
}
SCREENS = {
    **{name: ("kafka-4.3.1", words) for name, words in SOUND.items()},
    "verify-damaged": ("damaged", (*VERIFY, "--level", "full")),
    "verify-lost": ("lost", (*VERIFY, "--level", "listing")),
    "orphans-scan": ("aiven-crash-4.3.1", (*ORPHANS, "--layout", "aiven", "--store", "file:bucket")),
    "metadata-stuck": ("aiven-crash-4.3.1", (*STUCK, "--topic", "gone33", "--partition", "1")),
}
TERMINALS = {
    "80": {"COLUMNS": "80", "NO_COLOR": "1"},
    "200": {"COLUMNS": "200"},
    "40": {"COLUMNS": "40"},
    "80-ascii": {"COLUMNS": "80", **C_LOCALE},
}
IN_ITS_OWN_PROCESS = "80-ascii"
"""A locale is taken when a process starts."""
ALWAYS = {"status", "verify-damaged"}
"""Of the screens in processes of their own."""
OF_A_BUCKET = re.compile(r"^ *file:\S*/bucket:\s+(\d+)\s+orphaned\s+objects,\s+(\S+)\s+(\w+):\s+(\S+)\n", re.MULTILINE)
"""Where lines break depends on the name of the test's folder."""


@pytest.fixture(scope="module")
def folders(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters whose files have one age: one that crashed, one whose store is damaged, and one that lost a metadata
    partition, and hundreds of objects besides."""
    folder = tmp_path_factory.mktemp("screens")
    shutil.copytree(captures / "aiven-crash-4.3.1", folder / "aiven-crash-4.3.1")
    for name in ("kafka-4.3.1", "damaged"):
        shutil.copytree(captures / "kafka-4.3.1", folder / name)
    first, second, *_ = sorted(folder.glob("damaged/remote/**/orders7-0-*/*.log"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-7])
    lose_a_metadata_partition(captures / "kafka-4.3.1", folder / "lost")
    then = time.time() - HOURS_AGO * 3600
    for file in folder.rglob("*"):
        os.utime(file, (then, then))
    return folder


@pytest.mark.parametrize(
    ("name", "terminal"),
    [
        pytest.param(name, terminal, marks=pytest.mark.exhaustive)
        if terminal == IN_ITS_OWN_PROCESS and name not in ALWAYS
        else (name, terminal)
        for name in SCREENS
        for terminal in TERMINALS
    ],
)
def test_a_screen_is_as_it_was_read(folders: Path, name: str, terminal: str) -> None:
    cluster, words = SCREENS[name]

    show = screen if terminal == IN_ITS_OWN_PROCESS else screen_of_this_process
    shown = show(folders / cluster, *words, **TERMINALS[terminal])

    shown = OF_A_BUCKET.sub(r"  file:bucket: \1 orphaned objects, \2 \3: \4\n", shown)
    expected = FOLDER / f"{name}-{terminal}.txt"
    if os.environ.get("SCREENS") == "write":
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")
    assert terminal != IN_ITS_OWN_PROCESS or shown.isascii()


def test_a_lost_metadata_partition_is_the_first_line_of_one_screen_everywhere(folders: Path) -> None:
    for words in (
        ("status", *DATA, *STORE),
        SCREENS["verify-lost"][1],
        (*ORPHANS, *STORE, "--min-age", "0s"),
        DOCTOR,
    ):
        shown = screen_of_this_process(folders / "lost", *words, COLUMNS=str(WIDTH))

        assert rows(shown) <= ROWS, shown
        assert "metadata partition 2 is missing" in " ".join(" ".join(shown.splitlines()[:2]).split()), words
    assert "info: release-bug (2)" in shown.splitlines()
