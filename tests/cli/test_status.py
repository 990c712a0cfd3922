"""`status` shows what is known on one screen, and what is not known as unknown; what fails does not hide the rest."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import CLUSTER_ID, LISTED, ORPHANS, CrashedClusterOnDisk
from tests.cli.test_hostile_files import unprivileged
from tests.metadata_logs import copied, write_events
from tests.rigs.ports import free_ports
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.status.board import Status
from tieredctl.ops.status.facts import ClusterFacts, Tiered
from tieredctl.wiring.places import StorePlace


def lines(tieredctl: Tieredctl, *words: str | Path) -> dict[str, str]:
    """Each line's answer."""
    return {row["about"]: row["answer"] for row in tieredctl("status", *words, "-o", "json").document()["items"]}


@pytest.fixture
def scanned(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path) -> tuple[Path, Path]:
    """What a scan and a verification left: JSON, and metrics."""
    scan, metrics = tmp_path / "scan.json", tmp_path / "metrics.prom"
    places = ("--log-dir", cluster.log_dir, *cluster.store)
    scan.write_text(tieredctl("orphans", "scan", *places, "-o", "json").out)
    tieredctl("verify", *places, "--level", "listing", "--subset", "1/3", "--metrics-file", metrics)
    return scan, metrics


def test_log_directories_and_a_store_are_enough(
    cluster: CrashedClusterOnDisk, scanned: tuple[Path, Path], tieredctl: Tieredctl
) -> None:
    scan, metrics = scanned

    outcome = tieredctl(
        "status", "--log-dir", cluster.log_dir, *cluster.store, "--result", scan, "--result", metrics, "-o", "json"
    )

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 3
    assert summary["clusterId"] == CLUSTER_ID
    assert (summary["tiered"]["topics"], summary["tiered"]["partitions"]) == (3, 9)
    assert summary["stuck"] == {"copies": 29, "deletions": 35}
    assert summary["severities"] == {"critical": 0, "error": 0, "warning": 64, "info": 0}
    assert (summary["lastScan"]["orphans"], summary["lastScan"]["objects"]) == (ORPHANS, LISTED)
    assert 0 < summary["lastVerification"]["coverage"] < 1
    assert summary["notTiered"] is None  # only leaders know


def test_each_line_has_a_command_that_runs_as_it_is(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    rows = tieredctl("status", "--log-dir", cluster.log_dir, *cluster.store, "-o", "json").document()["items"]

    for command in {row["command"] for row in rows}:
        program, *words = command.split()
        assert program == "tieredctl"
        assert tieredctl(*words).exit_code in (0, 3), command


def test_a_log_that_may_not_be_read_leaves_the_store(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    log = cluster.log_dir / "__remote_log_metadata-0/00000000000000000000.log"
    log.chmod(0)

    outcome = unprivileged("status", "--log-dir", cluster.log_dir, *cluster.store, "-o", "json")

    log.chmod(0o644)
    rows = {row["about"]: row for row in outcome.document()["items"]}
    assert outcome.exit_code == 5
    assert rows["findings"]["answer"] == rows["cluster"]["answer"] == f"unknown: {log} may not be read"
    assert rows["quarantine"]["answer"] == "empty"
    for about in ("findings", "cluster"):
        assert tieredctl(*rows[about]["command"].split()[1:]).exit_code == 0


def test_a_store_where_the_system_fails_leaves_the_cluster(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_words: object) -> None:
        raise OSError(5, "Input/output error", "/mnt/tiered")

    places = ("--log-dir", cluster.log_dir, *cluster.store)
    before = tieredctl("status", *places, "-o", "json").document()["summary"]
    for name in ("open_store", "open"):
        with monkeypatch.context() as patched:
            patched.setattr(StorePlace, name, failing)
            if name == "open":
                patched.setattr(StorePlace, "open_store", failing)

            outcome = tieredctl("status", *places, "-o", "json")

        document = outcome.document()
        answers = {row["about"]: row["answer"] for row in document["items"]}
        assert (outcome.exit_code, document["summary"]["clusterId"]) == (5, CLUSTER_ID)
        assert document["summary"]["stuck"] == before["stuck"]
        assert answers["store"] == "unknown: /mnt/tiered: Input/output error"


def test_a_store_alone_is_listed_and_the_rest_is_unknown(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    answers = lines(tieredctl, *cluster.store)

    assert answers["store"].startswith(f"{LISTED} objects, ")
    assert {name for name, answer in answers.items() if answer.startswith("unknown")} == {
        "findings",
        "orphans",
        "verified",
    }


@pytest.mark.parametrize(("here", "is_missing"), [((0,), False), ((0, 2, 3), True)])
def test_metadata_that_may_not_be_whole_gives_the_least_there_is_or_nothing(
    here: tuple[int, ...], is_missing: bool, cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for number in here:
        name = f"__remote_log_metadata-{number}"
        shutil.copytree(cluster.log_dir / name, tmp_path / "data" / name)

    outcome = tieredctl("status", "--log-dir", tmp_path / "data", "-o", "json")

    answers = {row["about"]: row["answer"] for row in outcome.document()["items"]}
    summary = outcome.document()["summary"]
    if is_missing:
        assert (summary["tiered"]["remoteBytes"], summary["stuck"], outcome.exit_code) == (None, None, 5)
        assert answers["stuck"] == "unknown"
    else:
        assert summary["mayBeMore"]
        assert all(answers[about].startswith("at least ") for about in ("tiered", "bytes", "stuck"))


def test_an_event_that_cannot_be_read_leaves_sums_unknown(tmp_path: Path, tieredctl: Tieredctl) -> None:
    """It may be of any segment: its copy, or its end."""
    write_events(tmp_path, *copied(1, 0, 9), b"neither JSON nor an event", *copied(2, 10, 19))

    said = lines(tieredctl, "--log-dir", tmp_path)

    assert said["findings"] == "1 error"
    assert said["tiered"] == "unknown topics, unknown partitions, unknown segments"
    assert said["bytes"].startswith("unknown of logs tiered")
    assert said["stuck"] == "unknown"


def test_a_cluster_that_does_not_answer_leaves_the_store(
    cluster: CrashedClusterOnDisk, scanned: tuple[Path, Path], tieredctl: Tieredctl
) -> None:
    server = f"127.0.0.1:{free_ports(1)[0]}"

    outcome = tieredctl("status", "--bootstrap-server", server, *cluster.store, "--result", scanned[0], "-o", "json")

    answers = {row["about"]: row["answer"] for row in outcome.document()["items"]}
    assert outcome.exit_code == 5
    assert answers["findings"].startswith(f"unknown: {server} cannot be reached")
    assert answers["orphans"].startswith(f"{ORPHANS} of {LISTED} objects")
    assert outcome.document()["summary"]["severities"] is None


def test_a_store_that_does_not_answer_leaves_the_metadata(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, asked_once: None
) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    places = ("--log-dir", cluster.log_dir, "--store", "s3://nowhere", "--store-option", f"endpoint={url}")

    outcome = tieredctl("status", *places, "-o", "json")

    answers = {row["about"]: row["answer"] for row in outcome.document()["items"]}
    assert outcome.exit_code == 5
    assert answers["store"].startswith("unknown: ")
    assert answers["tiered"].startswith("3 topics, ")


def document(**changes: Any) -> str:
    summary = {"objects": 3, "status": {"orphan": {"objects": 1, "bytes": 5}}, "complete": True}
    return json.dumps({"kind": "RemoteObjects", "source": {}, "summary": summary, "items": []} | changes)


HOSTILE = {
    "empty": "",
    "binary": "\x00\x01",
    "another kind": document(kind="Doctor"),
    "no summary": document(summary=None),
    "a summary of another type": document(summary=[1]),
    "orphans of another type": document(summary={"status": {"orphan": {"objects": "1", "bytes": 5}}}),
    "fewer than none": document(summary={"status": {"orphan": {"objects": -1, "bytes": 5}}}),
    "nested": "{" + '"a":{' * 50_000,
    "more than there can be": document(summary={"objects": 10**400, "status": {"orphan": {"objects": 1, "bytes": 1}}}),
    "a mark of no time": document(kind="OrphanMark", summary={"candidates": 1, "markedMs": float("inf")}),
    "a mark of the future": document(kind="OrphanMark", summary={"candidates": 1, "markedMs": 1 << 60}),
    "metrics of the future": "".join(
        f'tieredctl_{name}{{command="verify"}} {number}\n'
        for name, number in {
            "segments": 3,
            "skipped": 0,
            "complete": 1,
            "last_run_timestamp_seconds": 9_999_999_999,
        }.items()
    ),
    "a store of another type": document(source={"store": 5}),
    "a cluster of another type": document(source={"clusterId": ["a"]}),
    "a time that is none": document(source={"at": "yesterday"}),
    "a time of another type": document(source={"at": 5}),
    "a mark that is not finished": document(kind="OrphanMark", summary={"success": False}),
    "another cluster": document(source={"clusterId": "another"}),
    "another store": document(source={"store": "s3://another"}),
    "metrics of something else": 'tieredctl_exit_code{command="doctor"} 0\n',
    "metrics without a time": 'tieredctl_segments{command="verify"} 3\n',
    "metrics that are no numbers": 'tieredctl_last_run_timestamp_seconds{command="verify"} NaN\n',
}


def test_what_is_not_a_result_of_this_cluster_is_refused(
    cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """Nor is a folder without one, or a file that is not there; and a status of nothing is wrong use."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").touch()
    for case in (*HOSTILE, "folder", "missing"):
        if case in HOSTILE:
            (tmp_path / "result").write_text(HOSTILE[case])
        result = tmp_path / ("result" if case in HOSTILE else case)

        outcome = tieredctl("status", "--log-dir", cluster.log_dir, *cluster.store, "--result", result)

        assert (outcome.exit_code, outcome.out) == (2, ""), case
        assert outcome.err.count("\n") == 2, case
    assert tieredctl("status")[:2] == (2, "")


@pytest.mark.parametrize("left", ["-o", "--metrics-file"])
def test_a_result_of_a_part_is_not_that_of_the_whole(
    left: str, cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    places: tuple[str | Path, ...] = ("--log-dir", cluster.log_dir, *cluster.store)

    def leave(name: str, *words: str | Path) -> None:
        file = tmp_path / f"{name}.{'json' if left == '-o' else 'prom'}"
        outcome = tieredctl(*words, *places, left, "json" if left == "-o" else file)
        if left == "-o":
            file.write_text(outcome.out)

    leave("a", "orphans", "scan")
    leave("b", "verify", "--level", "listing")
    leave("scan", "orphans", "scan", "--topic", "events33")
    leave("verify", "verify", "--level", "listing", "--topic", "events33")
    (scan,), (verified,) = (tmp_path.glob(f"{name}.*") for name in ("scan", "verify"))
    of_a_part = lines(tieredctl, *places, "--result", scan, "--result", verified)
    both = lines(tieredctl, *places, "--result", tmp_path)

    only = "; only topic events33" if left == "-o" else "; only what was selected"
    assert of_a_part["orphans"].startswith("0 of 18 objects, ")
    assert of_a_part["verified"].startswith("6 of 6 segments")
    assert "%" not in of_a_part["verified"]
    assert of_a_part["orphans"].endswith(only)
    assert of_a_part["verified"].endswith(only)
    assert both["orphans"].startswith(f"{ORPHANS} of {LISTED} objects, ")
    assert both["verified"].startswith("128 of 192 segments (67%)")


def test_a_result_says_when_it_was_made_and_a_copy_of_it_too(
    cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """As copies, checkouts and volumes are made: the file is of today."""
    for command in (("verify", "--level", "listing"), ("orphans", "scan")):
        before = datetime.now(UTC)

        document = tieredctl(*command, "--log-dir", cluster.log_dir, *cluster.store, "-o", "json").document()

        at = datetime.fromisoformat(document["source"]["at"])
        assert before - timedelta(milliseconds=1) <= at <= datetime.now(UTC), command
    document["source"]["at"] = "2023-11-14T22:13:20.000Z"
    (tmp_path / "copy").write_text(json.dumps(document))

    summary = tieredctl("status", *cluster.store, "--result", tmp_path / "copy", "-o", "json").document()["summary"]

    assert summary["lastScan"]["at"] == "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize("left", ["-o", "--metrics-file"])
def test_objects_that_an_earlier_scan_could_not_judge_are_not_called_sound(
    left: str, captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    whole, result = captures / "kafka-4.3.1/data", tmp_path / "result"
    partly = shutil.copytree(whole, tmp_path / "data", ignore=shutil.ignore_patterns("__remote_log_metadata-0"))
    store = ("--store", f"file:{captures}/kafka-4.3.1/remote/kafka-tiered-storage")
    scanned = tieredctl("orphans", "scan", "--log-dir", partly, *store, left, "json" if left == "-o" else result)
    if left == "-o":
        result.write_text(scanned.out)

    said = lines(tieredctl, "--log-dir", whole, *store, "--result", result)["orphans"]

    assert re.fullmatch(r"0 of 879 objects, 0 B, [1-9]\d* unknown, \d+s ago; it was incomplete", said), said


@pytest.mark.parametrize("source", [{"store": "file:/{}"}, {"clusterId": "{}"}], ids=["stores", "clusters"])
def test_results_of_two_places_are_refused_though_neither_is_known(
    source: dict[str, str], cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """Of neither one can tell that it is the one whose status is asked for."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(
            document(source={key: text.format(name) for key, text in source.items()})
        )
    place = ("--log-dir", cluster.log_dir) if "store" in source else cluster.store

    alone = tieredctl("status", *place, "--result", tmp_path / "a.json")
    together = tieredctl("status", *place, "--result", tmp_path)

    assert alone.exit_code != 2
    assert (together.exit_code, together.out) == (2, "")


def test_a_run_that_failed_leaves_what_an_earlier_one_found(
    cluster: CrashedClusterOnDisk, scanned: tuple[Path, Path], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    places: list[str | Path] = ["--log-dir", cluster.log_dir, *cluster.store]
    results = tmp_path / "results"
    results.mkdir()
    shutil.copy(scanned[1], results / "monday.prom")
    failed = tieredctl(*("verify", "--log-dir", "missing", *cluster.store, "--metrics-file", results / "tuesday.prom"))

    both = tieredctl("status", *places, "--result", results, "-o", "json").document()["summary"]
    alone = lines(tieredctl, *places, "--result", results / "tuesday.prom")

    assert failed.exit_code == 2
    assert both["lastVerification"]["path"] == f"{results}/monday.prom"
    assert alone["verified"] == f"unknown: {results}/tuesday.prom is of a verification that failed"


def test_the_answers_stay_however_narrow_the_terminal_is(
    log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = lines(tieredctl, "--log-dir", log_dir)
    for columns in ("40", "20"):
        monkeypatch.setenv("COLUMNS", columns)

        shown = tieredctl("status", "--log-dir", log_dir).out

        assert [about for about, answer in wide.items() if answer not in shown] == [], columns


def test_bytes_say_on_whose_disks_they_are() -> None:
    """`topic list`, which the line leads to, has those on all brokers' disks."""
    for live, disks in ((True, "leaders' disks"), (False, "disks")):
        facts = ClusterFacts(is_live=live, tiered=Tiered(remote_bytes=SizeSum(2048), local_bytes=1024))

        answers = {line.about: line.answer for line in Status(0, facts).lines()}

        assert answers["bytes"] == f"2.0 KiB of logs tiered, 1.0 KiB on {disks}"
