"""`tieredctl demo`: it shows what the real commands say, finds every fault that it makes, and leaves nothing."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl, environment, own_process
from tieredctl.cli.commands import demo
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.demo.demo_cluster import FAULTS, Fault

WITHOUT_JAVA = {"JAVA_HOME": "/nowhere"}
"""Spark is shown elsewhere, and takes longer."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def shown(kept: Path) -> Outcome:
    """What the demo says, which leaves its files in `kept`."""
    return own_process("demo", "--keep", kept, COLUMNS="200", **WITHOUT_JAVA)


def shown_commands(out: str) -> list[str]:
    return [line.removeprefix("$ ") for line in out.splitlines() if line.startswith("$ tieredctl ")]


def test_it_ends_well_and_says_nothing_on_stderr(shown: Outcome) -> None:
    assert (shown.exit_code, shown.err) == (0, "")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
def test_what_was_found_stands_beside_what_was_done(fault: Fault, shown: Outcome) -> None:
    lines = shown.out.splitlines()

    found = lines[lines.index(f"  done   {fault.done}") + 1]

    assert found.startswith("  found  ")
    assert fault.code in found
    assert f"at byte {fault.position}" in found or fault.position is None
    assert f"offsets {fault.offsets[0]}..{fault.offsets[1]} at risk" in found if fault.offsets else True


def test_the_sound_cluster_is_reported_as_sound(shown: Outcome) -> None:
    assert re.search(r"Verified 172 segments, .* \(full\): all intact\.\n\$ echo \$\?\n0\n", shown.out)


@pytest.mark.parametrize(("folder", "number"), [("sound", 2), ("damaged", 3)])
def test_a_command_that_is_typed_says_what_was_shown(
    folder: str, number: int, shown: Outcome, kept: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(shown_commands(shown.out)[number])[1:]
    monkeypatch.chdir(kept / folder)

    typed = tieredctl(*words)

    assert f"{typed.err}{typed.out}$ echo $?\n{typed.exit_code}\n" in shown.out


def test_without_java_spark_is_skipped_in_a_sentence(shown: Outcome) -> None:
    (sentence,) = [line for line in shown.out.splitlines() if line.startswith("Skipped")]
    assert sentence.startswith("Skipped, as it needs Java 17 and `pip install tieredctl-spark`: ")


def test_the_files_are_those_of_a_real_broker(shown: Outcome, kept: Path, captures: Path) -> None:
    files = [path for path in (kept / "sound").rglob("*") if path.is_file()]
    captured = captures / "kafka-4.3.1"

    for file in files:
        place = file.relative_to(kept / "sound")
        assert file.read_bytes() == (captured / place).read_bytes(), place

    assert len(files) > 900


@pytest.mark.parametrize("command", demo.OWN_CLUSTER_COMMANDS)
def test_the_commands_for_a_cluster_of_ones_own_can_be_typed(
    command: str, shown: Outcome, kept: Path, tieredctl: Tieredctl
) -> None:
    fill_in = {
        "--bootstrap-server HOST:PORT": "--log-dir LOG-DIR",
        "LOG-DIR": str(kept / "sound/data"),
        "STORE-DIR": str(kept / "sound/remote/kafka-tiered-storage"),
        "TOPIC:PARTITION": "orders7:0",
        "TOPIC": "orders7",
        "EPOCH": "0",
        "OFFSET": "5",
    }
    for placeholder, value in fill_in.items():
        command = command.replace(placeholder, value)

    assert tieredctl(*shlex.split(command)[1:]).exit_code == 0


def test_nothing_is_left(tmp_path: Path) -> None:
    outcome = own_process("demo", TMPDIR=str(tmp_path), **WITHOUT_JAVA)

    assert outcome.exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tieredctl", "demo"]
    variables = environment(TMPDIR=str(tmp_path), **WITHOUT_JAVA)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as running:
        assert running.stdout is not None
        next(line for line in running.stdout if line.startswith("$ tieredctl"))
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)

    assert (running.returncode, err.splitlines()[0]) == (130, "tieredctl: Interrupted.")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_may_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    monkeypatch.setattr(demo, "FAULTS", ())  # so that it ends early

    tieredctl("demo", "--keep", tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "sound"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path, tieredctl: Tieredctl) -> None:
    (tmp_path / "mine").touch()

    outcome = tieredctl("demo", "--keep", tmp_path)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: {tmp_path} is not an empty folder.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_is_refused(tmp_path: Path, tieredctl: Tieredctl) -> None:
    file = tmp_path / "mine"
    file.touch()

    assert tieredctl("demo", "--keep", file).exit_code == 2


def test_a_fault_that_is_not_found_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    never_done = Fault("did nothing", lambda _: None, FindingCode.OBJECT_MISSING, "no segment")
    monkeypatch.setattr(demo, "FAULTS", (*FAULTS, never_done))

    outcome = tieredctl("demo", "--keep", tmp_path / "kept")

    assert outcome.exit_code == 1
    assert "  done   did nothing\n  found  nothing\n" in outcome.out
    assert outcome.err.startswith("tieredctl: 5 of 6 faults were found, and 0 other findings.\n")


def test_a_finding_of_something_else_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    def leave_two_files(cluster: Path) -> None:
        for name in ("expected", "unexpected"):
            (cluster / "remote/kafka-tiered-storage" / name).touch()

    stray = Fault("left a file", leave_two_files, FindingCode.OBJECT_UNREFERENCED, "expected")
    monkeypatch.setattr(demo, "FAULTS", (*FAULTS, stray))

    outcome = tieredctl("demo", "--keep", tmp_path / "kept")

    assert outcome.exit_code == 1
    assert outcome.err.startswith("tieredctl: 6 of 6 faults were found, and 1 other finding.\n")
