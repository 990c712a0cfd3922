"""`snapshot fetch` that was interrupted: what is left of it, and how the same command goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.command_line import Outcome, environment
from tests.conftest import examples
from tests.rigs.scripted_controller import (
    ScriptedController,
)
from tests.rigs.snapshot_fetch import (
    BATCH_BYTES,
    CHUNK,
    CLEAN,
    FOOTER_BYTES,
    HEADER_BYTES,
    INTERRUPTED,
    LOCKED,
    NAME,
    OTHER_SNAPSHOT,
    SNAPSHOT,
    Fetch,
    part_name,
)
from tests.rigs.stopped_process import pasted
from tieredctl.kafka.metadata_quorum import MetadataQuorum
from tieredctl.ops.snapshots.fetching import FetchedSnapshot, fetch_snapshot


@pytest.mark.parametrize(
    ("part", "resumed_from"),
    [
        (SNAPSHOT[:HEADER_BYTES], HEADER_BYTES),
        (SNAPSHOT[:HEADER_BYTES] + b"garbage", HEADER_BYTES),
        (SNAPSHOT[:300], HEADER_BYTES + BATCH_BYTES),
        (SNAPSHOT[:300] + b"garbage", HEADER_BYTES + BATCH_BYTES),
        (SNAPSHOT[:-1], len(SNAPSHOT) - FOOTER_BYTES),
        (SNAPSHOT, len(SNAPSHOT)),
        (SNAPSHOT + b"more", 0),
        (OTHER_SNAPSHOT[:HEADER_BYTES], 0),
        (OTHER_SNAPSHOT, 0),
        (b"", 0),
        (bytes(5000), 0),
    ],
    ids=[
        "header",
        "garbage after the header",
        "cut",
        "garbage",
        "nearly all",
        "all",
        "more",
        "another's",
        "all of another",
        "empty",
        "zeros",
    ],
)
def test_what_an_earlier_run_left_is_used_as_far_as_it_is_of_this_snapshot(
    fetch: Fetch, tmp_path: Path, part: bytes, resumed_from: int
) -> None:
    (tmp_path / "snapshots" / part_name()).write_bytes(part)

    outcome = fetch("-o", "json")

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: SNAPSHOT}), outcome
    assert outcome.document()["items"][0]["resumedFrom"] == resumed_from


def test_a_part_of_another_controllers_is_left_alone(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "snapshots" / part_name(controller=2)).write_bytes(OTHER_SNAPSHOT[:HEADER_BYTES])

    assert fetch().exit_code == CLEAN
    assert fetch.left() == {NAME: SNAPSHOT, part_name(controller=2): OTHER_SNAPSHOT[:HEADER_BYTES]}


@given(stops=st.lists(st.integers(1, 20), max_size=4), chunk=st.integers(50, 700))
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_often_it_is_interrupted_the_file_is_the_controllers(
    tmp_path_factory: pytest.TempPathFactory, controller: ScriptedController, stops: list[int], chunk: int
) -> None:
    folder = tmp_path_factory.mktemp("interrupted")

    def fetched(stop: int | None) -> FetchedSnapshot:
        left = stop

        def tell(done: int, of: int) -> None:
            nonlocal left
            left = None if left is None else left - 1
            if left == 0:
                raise KeyboardInterrupt

        with closing(MetadataQuorum(controller.address)) as quorum:
            return fetch_snapshot(quorum, folder, None, chunk_bytes=chunk, force=True, tell=tell)

    for stop in [*stops, None]:
        try:
            fetched(stop)
        except KeyboardInterrupt:
            assert all(SNAPSHOT.startswith(file.read_bytes()) for file in folder.iterdir())

    assert [file.read_bytes() for file in folder.iterdir()] == [SNAPSHOT]


@pytest.mark.parametrize(
    "stops", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]], ids=["int", "term", "twice"]
)
def test_interrupted_by_a_signal_it_says_how_it_goes_on(
    fetch: Fetch, controller: ScriptedController, tmp_path: Path, stops: list[signal.Signals]
) -> None:
    words = ("snapshot", "fetch", "--bootstrap-controller", controller.address, "--to", str(tmp_path / "snapshots"))
    chunk = controller._chunk

    def and_interrupt(version: int, frame: bytes) -> object:
        if len(controller.positions) == 3:
            for stop in stops:
                running.send_signal(stop)
        return chunk(version, frame)

    controller._chunk = and_interrupt  # type: ignore[method-assign]
    command = [sys.executable, "-m", "tieredctl", *words, "--max-bytes", str(CHUNK)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())
    _, err = running.communicate(timeout=300)
    controller._chunk = chunk  # type: ignore[method-assign]

    assert (running.returncode, "resumes" in err) == (INTERRUPTED, True), err
    assert sound_files(fetch) == [part_name()]
    resumed = pasted(Outcome(running.returncode, "", err))
    assert (resumed.exit_code, sound_files(fetch)) == (CLEAN, [NAME]), resumed.err
    assert fetch.left()[NAME] == SNAPSHOT


def sound_files(fetch: Fetch) -> list[str]:
    """All but what a run that was stopped at once began to write."""
    return [name for name in fetch.left() if not name.startswith(".tieredctl-")]


def test_two_runs_do_not_mix(fetch: Fetch, tmp_path: Path) -> None:
    with (tmp_path / "snapshots" / part_name()).open("wb") as other:
        flock(other, LOCK_EX)
        outcome = fetch()

    assert (outcome.exit_code, fetch.left()) == (LOCKED, {part_name(): b""})
    assert "Another run fetches" in outcome.err
