"""`tieredctl demo`: it shows what the real commands say, finds every fault that it makes, and leaves nothing."""

from __future__ import annotations

import re
import shlex
from functools import reduce
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl, own_process
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


def test_what_was_found_stands_beside_what_was_done(shown: Outcome) -> None:
    assert (shown.exit_code, shown.err) == (0, "")
    assert re.search(r"Verified 172 segments, .* \(full\): all intact\.\n\$ echo \$\?\n0\n", shown.out)
    lines = shown.out.splitlines()
    for fault in FAULTS:
        found = lines[lines.index(f"  done   {fault.done}") + 1]

        assert found.startswith("  found  ")
        assert fault.code in found
        assert f"at byte {fault.position}" in found or fault.position is None, fault
        assert f"offsets {fault.offsets[0]}..{fault.offsets[1]} at risk" in found if fault.offsets else True
    (sentence,) = [line for line in lines if line.startswith("Skipped")]
    assert sentence.startswith("Skipped, as it needs Java 17 and `pip install tieredctl-spark`: ")


def test_a_command_that_is_typed_says_what_was_shown(
    shown: Outcome, kept: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, number in (("sound", 2), ("damaged", 3)):
        words = shlex.split(shown_commands(shown.out)[number])[1:]
        monkeypatch.chdir(kept / folder)

        typed = tieredctl(*words)

        assert f"{typed.err}{typed.out}$ echo $?\n{typed.exit_code}\n" in shown.out, words


def test_the_commands_for_a_cluster_of_ones_own_can_be_typed(shown: Outcome, kept: Path, tieredctl: Tieredctl) -> None:
    fill_in = {
        "--bootstrap-server HOST:PORT": "--log-dir LOG-DIR",
        "LOG-DIR": str(kept / "sound/data"),
        "STORE-DIR": str(kept / "sound/remote/kafka-tiered-storage"),
        "TOPIC:PARTITION": "orders7:0",
        "TOPIC": "orders7",
        "EPOCH": "0",
        "OFFSET": "5",
    }
    for command in demo.OWN_CLUSTER_COMMANDS:
        filled_in = reduce(lambda text, one: text.replace(*one), fill_in.items(), command)

        assert tieredctl(*shlex.split(filled_in)[1:]).exit_code == 0, command


def test_the_files_are_those_of_a_real_broker(shown: Outcome, kept: Path, captures: Path) -> None:
    files = [path for path in (kept / "sound").rglob("*") if path.is_file()]
    captured = captures / "kafka-4.3.1"

    for file in files:
        place = file.relative_to(kept / "sound")
        assert file.read_bytes() == (captured / place).read_bytes(), place

    assert len(files) > 900


def test_an_empty_folder_is_filled_and_one_of_its_own_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    monkeypatch.setattr(demo, "FAULTS", ())  # so that it ends early
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("temporary", "empty"):
        (tmp_path / name).mkdir()

    tieredctl("demo")
    tieredctl("demo", "--keep", tmp_path / "empty")

    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == ["damaged", "sound"]


def test_what_is_not_an_empty_folder_is_refused(tmp_path: Path, tieredctl: Tieredctl) -> None:
    (tmp_path / "mine").touch()

    for place in (tmp_path, tmp_path / "mine"):
        assert tieredctl("demo", "--keep", place)[:2] == (2, ""), place
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_fault_that_is_not_found_and_a_finding_of_something_else_are_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    def leave_two_files(cluster: Path) -> None:
        for name in ("expected", "unexpected"):
            (cluster / "remote/kafka-tiered-storage" / name).touch()

    never_done = Fault("did nothing", lambda _: None, FindingCode.OBJECT_MISSING, "no segment")
    stray = Fault("left a file", leave_two_files, FindingCode.OBJECT_UNREFERENCED, "expected")
    monkeypatch.setattr(demo, "FAULTS", (*FAULTS, never_done, stray))

    outcome = tieredctl("demo", "--keep", tmp_path / "kept")

    assert outcome.exit_code == 1
    assert "  done   did nothing\n  found  nothing\n" in outcome.out
    assert outcome.err.startswith("tieredctl: 6 of 7 faults were found, and 1 other finding.\n")
