"""Whoever reads the output goes away, or the disk that takes it is full: no traceback, and the right exit code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command_line import SECONDS, Outcome, environment, own_process
from tests.cli.crashed_cluster import CLUSTER_ID, CrashedClusterOnDisk, planned_keys
from tests.cli.test_recover_indexes import SEGMENT_ID
from tests.cli.test_remote_read import STEM, SUFFIXES
from tests.metadata_logs import copied, metadata_batches, write_log
from tests.shares import divided
from tieredctl.errors import ExitCode

FIRST_OFFSET = 39
"""Of the segment that is read."""
FULL = "tieredctl: the input or output: No space left on device.\n"
COMMANDS = {
    "findings": "orphans scan --store {bucket} --layout aiven --log-dir {data} --min-age 0s -o jsonl",
    "events": "metadata format --log-dir {data}",
    "totals": "remote du --store {bucket} --layout aiven",
    "document": "verify --store {bucket} --layout aiven --log-dir {data} --level listing -o json",
    "bytes": f"remote read {SEGMENT_ID} --to - --store {{store}} --layout local",
    "file": "store inspect {data}/meta.properties",
}


def words_of(name: str, planned: CrashedClusterOnDisk, captures: Path) -> list[str]:
    store = f"file:{captures}/kafka-4.3.1/remote/kafka-tiered-storage"
    return COMMANDS[name].format(bucket=planned.store[1], data=planned.log_dir, store=store).split()


def written_to(place: Path | int, words: Sequence[str]) -> Outcome:
    command = [sys.executable, "-m", "tieredctl", *words]
    with open(place, "wb") as out:
        done = subprocess.run(
            *(command,), stdout=out, stderr=subprocess.PIPE, text=True, env=environment(), timeout=SECONDS, check=False
        )
    return Outcome(done.returncode, "", done.stderr)


def gone_reader() -> int:
    """The end of a pipe that nobody reads."""
    reads, writes = os.pipe()
    os.close(reads)
    return writes


NAMES = ["findings", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in COMMANDS if name != "findings")]


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_that_has_gone_takes_nothing_from_the_exit_code_and_a_full_disk_is_one_sentence(
    name: str, cluster: CrashedClusterOnDisk, captures: Path, tmp_path: Path
) -> None:
    words = words_of(name, cluster, captures)
    read = written_to(tmp_path / "read", words)

    unread, full = written_to(gone_reader(), words), written_to(Path("/dev/full"), words)

    assert unread.exit_code == read.exit_code == (3 if name in ("findings", "document") else 0), unread.err
    assert not re.search("Traceback|Broken pipe", unread.err)
    assert (full.exit_code, FULL in full.err, "Traceback" in full.err) == (1, True, False), full.err


LISTINGS = divided(["format", "format -o jsonl", "format -o csv", "format --style kip405"])


MANY = 100
"""Batches: far more than are read at once."""


def long_log(log_dir: Path, odd: int) -> Path:
    """A log in which one batch has a record that is no event."""
    (events,) = metadata_batches(copied(1, 0, 9) * 500, records_per_batch=1_000)
    (strange,) = metadata_batches([b"no event"])
    batches = [strange if number == odd else events for number in range(MANY)]
    # The offset of the first record is not in a batch's checksum.
    write_log(log_dir, 0, [(number * 1_000).to_bytes(8) + batch[8:] for number, batch in enumerate(batches)])
    return log_dir


def test_a_listing_that_nobody_reads_any_more_is_not_read_to_its_end(tmp_path: Path) -> None:
    log_dir = str(long_log(tmp_path / "last", odd=MANY - 1))
    at_first = str(long_log(tmp_path / "first", odd=0))
    whole = written_to(Path(os.devnull), ["metadata", "format", "--log-dir", log_dir])

    assert whole.exit_code == ExitCode.FINDINGS
    for listing in LISTINGS:
        unread = written_to(gone_reader(), ["metadata", *listing.split(), "--log-dir", log_dir])
        assert (unread.exit_code, unread.err) == (ExitCode.CLEAN, ""), listing
        unread = written_to(gone_reader(), ["metadata", *listing.split(), "--log-dir", at_first])
        assert (unread.exit_code, "undecodable" in unread.err) == (ExitCode.FINDINGS, True), listing


def damaged_segment(captures: Path, store: Path, *damaged: int) -> list[str]:
    """The words that read a long log of which some batches are damaged."""
    stem = Path(captures, "kafka-4.3.1/remote/kafka-tiered-storage", STEM)
    shutil.copytree(stem.parent, store / stem.parent.name)
    (events,) = metadata_batches(copied(1, 0, 9) * 500, records_per_batch=1_000)
    batches = [(number * 1_000 + FIRST_OFFSET).to_bytes(8) + events[8:] for number in range(MANY)]
    for number in damaged:
        batches[number] = batches[number][:-1] + b"\xff"
    (store / f"{STEM}.log").write_bytes(b"".join(batches))
    return ["remote", "read", SEGMENT_ID, "--to", "-", "--store", f"file:{store}", "--layout", "local"]


def test_a_segment_that_nobody_reads_any_more_is_not_read_to_its_end(captures: Path, tmp_path: Path) -> None:
    words = damaged_segment(captures, tmp_path / "store", MANY - 2)
    whole = written_to(Path(os.devnull), words)

    unread = written_to(gone_reader(), words)

    assert (whole.exit_code, "batch-corrupt" in whole.err) == (ExitCode.CORRUPTION, True), whole.err
    assert (unread.exit_code, unread.err) == (ExitCode.CLEAN, "")


def test_what_is_made_for_a_closed_stdout_alone_is_refused(captures: Path, tmp_path: Path) -> None:
    store = f"file:{captures}/kafka-4.3.1/remote/kafka-tiered-storage"
    read = f"remote read {SEGMENT_ID} --to - --store {store} --layout local"
    for words in (read, "support-bundle --to -"):
        for closed, code in ((">&-", ExitCode.FAILURE), (f">{tmp_path}/read", ExitCode.CLEAN)):
            script = f"{sys.executable} -m tieredctl {words} {closed}"
            command = ["bash", "-c", script]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment(), check=False)

            assert done.returncode == code, done.stderr
            assert done.stderr.startswith("tieredctl: stdout is closed: ") is (code is ExitCode.FAILURE)


def test_what_is_wrong_with_a_segment_up_to_where_its_reader_went_is_said(captures: Path, tmp_path: Path) -> None:
    words = damaged_segment(captures, tmp_path / "store", 2, MANY - 2)

    unread = written_to(gone_reader(), words)

    assert unread.exit_code == ExitCode.CORRUPTION, unread.err
    assert "batch-corrupt" in unread.err
    assert "stretches" not in unread.err


def test_of_what_is_read_at_once_all_that_is_wrong_is_said(captures: Path, tmp_path: Path) -> None:
    stem = Path(captures, "kafka-4.3.1/remote/kafka-tiered-storage", STEM)
    for part in divided([*SUFFIXES]):
        shutil.copytree(stem.parent, tmp_path / part / stem.parent.name)
        (tmp_path / part / f"{STEM}.{SUFFIXES[part]}").write_bytes(b"\xff" * 100)
        words = ["remote", "read", SEGMENT_ID, "--part", part, "--to", "-", "--store", f"file:{tmp_path / part}"]
        read = written_to(Path(os.devnull), words)

        unread = written_to(gone_reader(), words)

        assert (unread.exit_code, unread.err) == (read.exit_code, read.err), part
        assert unread.exit_code == ExitCode.CORRUPTION, part


def test_metrics_are_of_everything_though_nobody_reads_the_listing(captures: Path, tmp_path: Path) -> None:
    words = ["metadata", "segments", "-o", "jsonl", "--log-dir", f"{captures}/kafka-4.3.1/data", "--metrics-file"]
    files = [tmp_path / "read.prom", tmp_path / "unread.prom"]

    written_to(tmp_path / "read", [*words, str(files[0])])
    written_to(gone_reader(), [*words, str(files[1])])

    counts = [re.findall(r"^tieredctl_items.*$", file.read_text(), re.MULTILINE) for file in files]
    assert counts[0] == counts[1] != []


@pytest.mark.parametrize("place", [Path("/dev/full"), None], ids=["full", "gone"])
def test_a_removal_that_nobody_reads_is_done_and_recorded(planned: CrashedClusterOnDisk, place: Path | None) -> None:
    confirmed = ["--offline-metadata", "--log-dir", str(planned.log_dir), "--yes", "--cluster-id", CLUSTER_ID]
    words = ["orphans", "apply", str(planned.plan_file), *confirmed, "-o", "json"]

    outcome = written_to(gone_reader() if place is None else place, words)

    assert (outcome.exit_code, "Traceback" in outcome.err) == (1 if place else 0, False), outcome.err
    assert not planned_keys(planned.plan_file) & {*planned.objects()}
    assert planned.restore().exit_code == 0


@pytest.mark.parametrize("place", [Path("/dev/full"), None], ids=["full", "gone"])
def test_where_nobody_hears_of_findings_the_answer_and_the_exit_code_are_the_same(
    place: Path | None, cluster: CrashedClusterOnDisk
) -> None:
    for command in divided(["status --log-dir", "metadata stuck --log-dir", "store check"]):
        words = [*command.split(), str(cluster.log_dir)]
        heard = own_process(*words)
        line = [sys.executable, "-m", "tieredctl", *words]

        with open(gone_reader() if place is None else place, "wb") as errors:
            unheard = subprocess.run(
                *(line,), stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(), check=False
            )

        assert (unheard.returncode, unheard.stdout) == (heard.exit_code, heard.out), command


def without_stdin(*words: str | Path, **variables: str) -> Outcome:
    """Runs tieredctl as some supervisors do: with stdin closed."""
    line = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "tieredctl", *map(str, words)]
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment(**variables), timeout=SECONDS, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_where_stdin_is_closed_nobody_is_asked(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    configuration = str(tmp_path / "config.yaml")
    store = planned.store[1]
    sources = ["--offline-metadata", "--log-dir", str(planned.log_dir)]

    added = without_stdin("context", "add", "prod", "--store", store, TIEREDCTL_CONFIG=configuration)
    applied = without_stdin("orphans", "apply", planned.plan_file, *sources)

    assert (added.exit_code, applied.exit_code) == (0, ExitCode.USAGE), added.err + applied.err
    assert planned_keys(planned.plan_file) <= {*planned.objects()}


def test_a_closed_stdin_is_an_empty_file_to_inspect() -> None:
    assert without_stdin("store", "inspect", "-").exit_code == ExitCode.USAGE
