"""`--metrics-file`: however a command ends, its exit code stands there, and figures of that run alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.command_tree import command_at, commands
from tests.cli.crashed_cluster import AGED, CLUSTER_ID, ENOUGH, CrashedClusterOnDisk, planned_keys
from tests.cli.openmetrics import Sample, read_metrics
from tests.cli.test_gone_readers import gone_reader, written_to
from tests.rigs.ports import free_ports
from tests.rigs.stopped_process import INT, TERM, Moment, run_until
from tieredctl.errors import ExitCode

OF_ANY_RUN = {"tieredctl_exit_code", "tieredctl_last_run_timestamp_seconds"}
NEEDED = {
    "--older-than": "7d",
    "partition": "Ex-aw3fEQIi3do0H9Y7cKQ:0",
    "segment_id": "V_QmtSRAS-qC_YrVmRd2HA",
    "where": "orders:0@7",
    "code": "no-such-code",
    "old": "3.9.1",
    "new": "4.3.1",
}
"""What commands cannot do without, by option or argument; all else is the name of a file that is not there."""


def with_metrics() -> Iterator[tuple[str, ...]]:
    for words, command in [*commands(), (("doctor",), command_at(("doctor",)))]:
        if any(parameter.name == "metrics_file" for parameter in command.params):
            yield words


def exit_codes(samples: list[Sample]) -> list[float]:
    return [sample.value for sample in samples if sample.family == "tieredctl_exit_code"]


YESTERDAY = """# HELP tieredctl_exit_code Of yesterday.
tieredctl_exit_code{command="yesterday"} 0
tieredctl_objects{command="yesterday"} 7
"""


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """Of a run of yesterday, which found nothing."""
    (tmp_path / "metrics.prom").write_text(YESTERDAY)
    return tmp_path / "metrics.prom"


def test_each_command_without_what_it_needs_says_so(
    tieredctl: Tieredctl, metrics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for words in with_metrics():
        given: list[str] = []
        for parameter in command_at(words).params:
            if parameter.required:
                is_option = parameter.param_type_name == "option"
                name = parameter.opts[0] if is_option else parameter.name
                given += [*([name] if is_option else []), NEEDED.get(name, "missing")]
        metrics.write_text(YESTERDAY)

        outcome = tieredctl(*words, *given, "--metrics-file", metrics)

        samples = read_metrics(metrics.read_text())
        assert {dict(sample.labels)["command"] for sample in samples} == {" ".join(words)}, outcome.err
        assert exit_codes(samples) == [outcome.exit_code], words


def scan_words(planned: CrashedClusterOnDisk) -> list[str | Path]:
    return ["orphans", "scan", *planned.store, "--layout", "aiven", "--log-dir", planned.log_dir, "--min-age", "0s"]


def apply_words(planned: CrashedClusterOnDisk) -> list[str | Path]:
    metadata: list[str | Path] = ["--offline-metadata", "--log-dir", planned.log_dir]
    return ["orphans", "apply", planned.plan_file, *metadata, "--yes", "--cluster-id", CLUSTER_ID]


def nothing_but_findings(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    return planned.scan("--metrics-file", metrics)


def a_gone_reader(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    words = [*scan_words(planned), "-o", "jsonl", "--metrics-file", metrics]
    return written_to(gone_reader(), [*map(str, words)])


def a_full_disk(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    return written_to(Path("/dev/full"), [*map(str, [*scan_words(planned), "--metrics-file", metrics])])


def a_cluster_that_does_not_answer(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    server = f"127.0.0.1:{free_ports(1)[0]}"
    return planned.tieredctl("status", "--bootstrap-server", server, *planned.store, "--metrics-file", metrics)


def lost_metadata(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    rest = metrics.parent / "rest"
    shutil.copytree(planned.log_dir, rest, ignore=shutil.ignore_patterns("__remote_log_metadata-1"))
    return replace(planned, log_dir=rest).scan("--metrics-file", metrics)


def a_plan_that_is_refused(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    return planned.plan(*AGED, *ENOUGH, "--metrics-file", metrics)  # there is one already


def a_change_that_leaves_something(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    (planned.bucket / min(planned_keys(planned.plan_file))).write_bytes(b"another")
    return planned.apply("--metrics-file", metrics)


def an_interruption(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    words = [*apply_words(planned), "--metrics-file", metrics]
    return run_until(Moment("quarantine", 20), TERM, planned.bucket, words)


def a_watch_that_is_ended(planned: CrashedClusterOnDisk, metrics: Path) -> Outcome:
    shown = ("--watch", "--interval", "1s")
    words: list[str | Path] = ["status", "--log-dir", planned.log_dir, *shown, "--metrics-file", metrics]
    return run_until(Moment(r"rename .*metrics\.prom", 2), INT, metrics.parent, words)


Trouble = Callable[[CrashedClusterOnDisk, Path], Outcome]
TROUBLE: dict[Trouble, ExitCode] = {
    nothing_but_findings: ExitCode.FINDINGS,
    a_gone_reader: ExitCode.FINDINGS,
    a_full_disk: ExitCode.FAILURE,
    a_cluster_that_does_not_answer: ExitCode.INCOMPLETE,
    lost_metadata: ExitCode.INCOMPLETE,
    a_plan_that_is_refused: ExitCode.FAILURE,
    a_change_that_leaves_something: ExitCode.INCOMPLETE,
    an_interruption: ExitCode.INTERRUPTED,
    a_watch_that_is_ended: ExitCode.FINDINGS,
}


@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda trouble: trouble.__name__)
def test_in_trouble_of_any_kind_both_exit_codes_are_the_same(
    trouble: Trouble, planned: CrashedClusterOnDisk, metrics: Path
) -> None:
    outcome = trouble(planned, metrics)

    samples = read_metrics(metrics.read_text())
    assert (outcome.exit_code, exit_codes(samples)) == (TROUBLE[trouble], [outcome.exit_code]), outcome.err
    if outcome.exit_code in (ExitCode.FAILURE, ExitCode.INTERRUPTED):
        assert {sample.family for sample in samples} == OF_ANY_RUN


def test_a_file_that_cannot_be_written_is_said_before_the_work(tieredctl: Tieredctl, tmp_path: Path) -> None:
    file = tmp_path / "no-such-folder/metrics.prom"

    outcome = tieredctl("metadata", "stats", "--log-dir", tmp_path / "nor-this", "--metrics-file", file)

    assert (outcome.exit_code, "nor-this" in outcome.err) == (1, False)
