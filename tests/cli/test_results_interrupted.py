"""Commands that write a file for their user, interrupted by a real signal: the file is there, and that is said, or it
is not there. What stood in its place stays until then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import CAPTURE
from tests.rigs.stopped_process import FINISHING, FULL_DISK, INT, TERM, Moment, Stop, run_until

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
COMMANDS = {
    "export": "metadata export {file} --log-dir {kafka}/data --force",
    "plan": "orphans plan --to {file} --store file:{crash}/bucket --layout aiven --log-dir {crash}/data "
    "--min-age 1h --max-percent 80 --force",
    "segment": f"remote read {SEGMENT_ID} --to {{file}} --store file:{{kafka}}/remote/kafka-tiered-storage --force",
    "bundle": "support-bundle --to {file} --log-dir {kafka}/data --force",
    "context": "context add archive --store file:{kafka} --force",
}
BEFORE = b"{}\n"


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the commands replace."""
    config = tmp_path / "config.yaml"
    is_context = request.node.callspec.params["name"] == "context"
    path = tmp_path / ("contexts.d/archive.yaml" if is_context else "results/result.jsonl")
    path.parent.mkdir()
    for one in (path, config):
        one.write_bytes(BEFORE)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    return path


def stopped(name: str, moment: Moment, stop: Stop, file: Path, captures: Path) -> Outcome:
    words = COMMANDS[name].format(file=file, kafka=captures / "kafka-4.3.1", crash=captures / CAPTURE).split()
    return run_until(moment, stop, file.parent, words)


def besides(file: Path) -> list[str]:
    """What else is there."""
    return [path.name for path in file.parent.iterdir() if path != file]


def with_all_commands(always: tuple[str, Stop], *stops: Stop) -> pytest.MarkDecorator:
    """Each command with each of these, of which one runs always."""
    cases = [(name, stop) for name in COMMANDS for stop in stops]
    rest = [pytest.param(*case, marks=pytest.mark.exhaustive) for case in cases if case != always]
    return pytest.mark.parametrize(("name", "stop"), [always, *rest])


@with_all_commands(("plan", TERM), INT, TERM)
def test_once_the_file_is_in_its_place_the_command_ends_by_itself(
    name: str, stop: Stop, file: Path, captures: Path
) -> None:
    outcome = stopped(name, Moment("^rename "), stop, file, captures)

    assert (outcome.exit_code, FINISHING in outcome.err, "Run it again" in outcome.err) == (0, True, False), outcome
    assert file.read_bytes() != BEFORE
    assert besides(file) == []


@with_all_commands(("segment", FULL_DISK), INT, FULL_DISK)
def test_before_that_what_was_there_stays(name: str, stop: Stop, file: Path, captures: Path) -> None:
    outcome = stopped(name, Moment(r"^open .*\.tmp"), stop, file, captures)

    said = [line for line in outcome.err.splitlines() if line.startswith("tieredctl: ")]
    expected = (130, "Interrupted.") if stop is INT else (1, "No space left on device.")
    assert (outcome.exit_code, len(said)) == (expected[0], 1), outcome
    assert said[0].endswith(expected[1])
    assert file.read_bytes() == BEFORE
    assert besides(file) == []
