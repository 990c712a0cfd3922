"""`--fail-on` and `--ignore`: what counts for an exit code, and never for what is done or for what is unknown."""

from __future__ import annotations

import csv
import io
import shutil
from itertools import combinations
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.errors import ExitCode, worst
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import FINDING_KINDS, Finding, Severity, exit_code_of
from tieredctl.model.tolerance import Ignored, Tolerance

INDEX = "YGh7W7-vQHekQhlkpKRLsg"


@pytest.fixture(scope="module")
def damaged(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster of which a time index is missing, and in whose store a stranger's file is."""
    folder = tmp_path_factory.mktemp("damaged") / "cluster"
    shutil.copytree(captures / "kafka-4.3.1", folder)
    (index,) = folder.rglob(f"remote/**/*{INDEX}.timeindex")
    index.unlink()
    (index.parent / "00000000000000000099-AAAAAAAAAAAAAAAAAAAAAA.log").write_bytes(b"stray")
    return folder


def verified(tieredctl: Tieredctl, cluster: Path, *words: str) -> Outcome:
    store = f"file:{cluster / 'remote' / 'kafka-tiered-storage'}"
    return tieredctl("verify", "--level", "listing", "--log-dir", cluster / "data", "--store", store, *words)


MISSING, STRAY = "object-missing", "object-unreferenced"


def test_the_exit_code_is_of_what_counts(damaged: Path, tieredctl: Tieredctl) -> None:
    ignoring = ("--ignore", MISSING)
    for words, code in (
        ((), ExitCode.CORRUPTION),
        (ignoring, ExitCode.FINDINGS),
        (("--ignore", f"{MISSING}:payments7-1 {INDEX} time-index"), ExitCode.FINDINGS),
        (("--ignore", f"{MISSING}:payments7-1 {INDEX}"), ExitCode.CORRUPTION),
        ((*ignoring, "--ignore", STRAY), ExitCode.CLEAN),
        ((*ignoring, "--fail-on", "error"), ExitCode.CLEAN),
        ((*ignoring, "--fail-on", "WARNING"), ExitCode.FINDINGS),
        (("--fail-on", "critical"), ExitCode.CORRUPTION),
        (("--ignore", "object-mising"), ExitCode.USAGE),
        (("--ignore", "Offset-Gap:t-0"), ExitCode.USAGE),
        (("--fail-on", "grave"), ExitCode.USAGE),
        (("--ignore", ""), ExitCode.USAGE),
    ):
        assert verified(tieredctl, damaged, *words).exit_code == code, words


def test_what_is_ignored_is_counted_and_said(damaged: Path, tieredctl: Tieredctl) -> None:
    plain = verified(tieredctl, damaged, "-o", "json").document()
    shown = {
        output: verified(tieredctl, damaged, "--ignore", MISSING, "-o", output)
        for output in ("table", "wide", "jsonl", "csv", "json")
    }
    document = shown.pop("json").document()

    for output, outcome in shown.items():
        assert f"1 finding is ignored: {MISSING} (1)." in outcome.out + outcome.err, output
        assert "1 ignored finding is critical, and not in the exit code" in outcome.out + outcome.err, output
    assert f"critical: {MISSING}" not in shown["table"].out
    assert [item["code"] for item in shown["jsonl"].lines()].count(MISSING) == 1
    assert [row["code"] for row in csv.DictReader(io.StringIO(shown["csv"].out))].count(MISSING) == 1
    assert (document["items"], document["summary"]) == (plain["items"], plain["summary"] | {"ignored": 1})


def test_what_makes_an_answer_incomplete_cannot_be_ignored(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    shutil.copytree(captures / "kafka-4.3.1", tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost" / "data" / "__remote_log_metadata-2")
    ignoring = ("--ignore", "metadata-partition-missing")

    shown = verified(tieredctl, tmp_path / "lost", *ignoring, "--fail-on", "critical", "--quiet")
    before_the_answer = tieredctl("metadata", "segments", "--log-dir", tmp_path / "lost/data", *ignoring)

    assert (shown.exit_code, before_the_answer.exit_code) == (ExitCode.INCOMPLETE, ExitCode.INCOMPLETE)
    assert "error: metadata-partition-missing: " in shown.out
    for text in (shown.out, before_the_answer.err):
        assert "Not ignored, because the answer is incomplete: metadata-partition-missing (1)." in text


def test_nothing_hides_loss_or_what_is_unknown() -> None:
    for kind in FINDING_KINDS.values():
        found = [Finding(kind.code, "s", "m")]
        plain = exit_code_of(found)
        for fail_on in Severity:
            tolerated = exit_code_of(found, Tolerance(fail_on))
            ignored = exit_code_of(found, Tolerance(fail_on, frozenset([Ignored(kind.code)])))

            if plain in (ExitCode.CORRUPTION, ExitCode.INCOMPLETE):
                assert tolerated == plain
            else:
                assert tolerated == (ExitCode.FINDINGS if kind.severity >= fail_on else ExitCode.CLEAN)
            assert ignored == (ExitCode.INCOMPLETE if plain is ExitCode.INCOMPLETE else ExitCode.CLEAN)


def test_a_finding_of_another_subject_is_not_ignored() -> None:
    found = [Finding(FindingCode.COPY_STUCK, subject, "m") for subject in ("orders-0 a:b", "orders-0 a")]

    ignoring = Tolerance(ignored=frozenset([Ignored(FindingCode.COPY_STUCK, "orders-0 a:b")]))

    assert exit_code_of(found[:1], ignoring) is ExitCode.CLEAN
    assert exit_code_of(found, ignoring) is ExitCode.FINDINGS


NOTHING_FOUND = {
    "metadata segments": ("metadata", "segments", "--log-dir", "data", "--state", "DELETE_SEGMENT_STARTED"),
    "metadata format": ("metadata", "format", "--log-dir", "data", "--until", "2001-01-01"),
    "metadata stuck": ("metadata", "stuck", "--log-dir", "data", "--older-than", "9999d"),
    "verify": ("verify", "--level", "listing", "--log-dir", "data", "--store", "file:remote/kafka-tiered-storage"),
    "store check": ("store", "check", "data"),
    "snapshot verify": ("snapshot", "verify", "data/__cluster_metadata-0"),
    "orphans scan": (
        *("orphans", "scan", "--log-dir", "data", "--store", "file:remote/kafka-tiered-storage"),
        *("--kraft-snapshot", "data/__cluster_metadata-0"),
    ),
}


def test_nothing_found_is_clean_everywhere(
    captures: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(captures / "kafka-4.3.1")
    for name, words in NOTHING_FOUND.items():
        shown = tieredctl(*words)

        assert shown.exit_code == ExitCode.CLEAN, (name, shown.err)


def test_a_refused_change_is_not_made_because_its_reason_is_ignored(damaged: Path, tieredctl: Tieredctl) -> None:
    store = f"file:{damaged / 'remote' / 'kafka-tiered-storage'}"
    removing = ("partition", "remove", "A" * 22, "--store", store, "--log-dir", damaged / "data")

    assert tieredctl(*removing, "--ignore", MISSING).exit_code == ExitCode.USAGE


def test_of_several_exit_codes_the_gravest_counts() -> None:
    from_harmless_to_worst = [0, 3, 5, 4, 11, 2, 1, 130]

    for lighter, graver in combinations(map(ExitCode, from_harmless_to_worst), 2):
        assert worst(graver, lighter) is worst(lighter, graver) is graver
