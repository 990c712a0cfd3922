"""`exporter` serves what is known for Prometheus, from the last look; what is not known has no sample."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_text

from tests.cli.command_line import Tieredctl, environment
from tests.cli.crashed_cluster import CLUSTER_ID, LISTED, ORPHANS, OTHER_CLUSTER_ID, CrashedClusterOnDisk
from tests.cli.running_exporter import Samples, exporter, is_up
from tests.metadata_logs import PARTITION, copied, segment_id, write_events
from tests.rigs.ports import free_ports

TOPICS = ("small", 'hostile "\\\n{}', "large")


def test_the_figures_are_those_of_status(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path) -> None:
    scan = tmp_path / "scan.json"
    places: tuple[str | Path, ...] = ("--log-dir", cluster.log_dir, *cluster.store)
    scan.write_text(tieredctl("orphans", "scan", *places, "-o", "json").out)
    status = tieredctl("status", *places, "--result", scan, "-o", "json").document()["summary"]

    with exporter(*places, "--result", scan) as running:
        samples = running.awaited(is_up)

    def total(name: str) -> float:
        return sum(value for key, value in samples.items() if key[0] == name)

    assert samples["tieredctl_cluster_info", f"cluster_id={CLUSTER_ID}"] == 1
    assert total("tieredctl_remote_segments") == status["tiered"]["segments"]
    assert total("tieredctl_remote_bytes") == status["tiered"]["remoteBytes"]
    assert total("tieredctl_stuck_copies") == status["stuck"]["copies"] == 29
    assert total("tieredctl_stuck_deletions") == status["stuck"]["deletions"] == 35
    assert total("tieredctl_current_findings") == 64
    assert samples["tieredctl_orphaned_objects",] == ORPHANS
    assert samples["tieredctl_last_scan_objects",] == LISTED
    assert samples["tieredctl_exporter_metadata_readings_total",] == 1
    assert not any(key[0].startswith(("tieredctl_lag", "tieredctl_last_verification")) for key in samples)


def test_what_tieredctl_removed_is_not_stuck_as_status_says(
    quarantined: CrashedClusterOnDisk, tieredctl: Tieredctl
) -> None:
    places: tuple[str | Path, ...] = ("--log-dir", quarantined.log_dir, *quarantined.store)
    status = tieredctl("status", *places, "-o", "json").document()["summary"]

    with exporter(*places) as running:
        samples = running.awaited(is_up)

    stuck = {
        what: sum(value for key, value in samples.items() if key[0] == f"tieredctl_stuck_{what}")
        for what in ("copies", "deletions")
    }
    found = {key[1:]: value for key, value in samples.items() if key[0] == "tieredctl_current_findings"}
    partitions = sum(value for key, value in samples.items() if key[0] == "tieredctl_partition_stuck_copies")
    assert stuck == status["stuck"]
    assert stuck["copies"] < 29
    assert partitions == stuck["copies"]
    assert found["code=object-removed", "severity=info"] > 0
    assert sum(found.values()) == sum(status["severities"].values())


@pytest.mark.integration
def test_text_or_openmetrics_as_the_scraper_accepts(cluster: CrashedClusterOnDisk) -> None:
    with exporter("--log-dir", cluster.log_dir) as running:
        running.awaited(is_up)

        strict, plain = running.scrape(), running.scrape("text/plain")
        assert running.stop(signal.SIGINT) == 0, running.said

    assert strict[0].startswith("application/openmetrics-text")
    assert strict[1].endswith("# EOF\n")
    assert plain[0].startswith("text/plain")
    assert {family.name for family in read_text(plain[1])} >= {"tieredctl_stuck_copies", "tieredctl_metadata_events"}
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=plain[1], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_a_signal_ends_it_cleanly(cluster: CrashedClusterOnDisk) -> None:
    with exporter("--log-dir", cluster.log_dir) as running:
        assert running.stop(signal.SIGTERM) == 0, running.said


IS_STOPPED_WHILE_A_CLASS_IS_MADE = """
import os, signal, sys
from tieredctl.cli.main import main
from tieredctl.wiring.exporter import Exporter

Exporter.refresh = lambda exporter: exec("os.kill(os.getpid(), signal.SIGTERM); signal.pause()")
main()
"""


def test_a_signal_ends_it_cleanly_also_while_a_class_is_made(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(IS_STOPPED_WHILE_A_CLASS_IS_MADE)
    words = ["-m", "stopped", "exporter", "--listen", "127.0.0.1:0", "--log-dir", str(cluster.log_dir)]
    paths = {"PYTHONPATH": str(tmp_path)}

    stopped = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment() | paths
    )

    assert stopped.returncode == 0, stopped.stderr


def test_metadata_that_goes_away_is_unknown_and_a_result_of_another_cluster_dropped_as_soon_as_that_is_known(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    log_dir, scan, elsewhere = tmp_path / "data", tmp_path / "scan.json", tmp_path / "elsewhere"
    scanned = tieredctl("orphans", "scan", "--log-dir", cluster.log_dir, *cluster.store, "-o", "json").out
    scan.write_text(scanned.replace(CLUSTER_ID, OTHER_CLUSTER_ID))
    shutil.copytree(cluster.log_dir, elsewhere)

    with exporter("--log-dir", log_dir, "--result", scan) as running:
        at_first = running.awaited(lambda seen: seen.get(("tieredctl_orphaned_objects",)) == ORPHANS)
        elsewhere.rename(log_dir)
        known = running.awaited(lambda seen: seen["tieredctl_exporter_part_up", "part=metadata"] == 1)
        log_dir.rename(elsewhere)
        gone = running.awaited(lambda seen: seen["tieredctl_exporter_part_up", "part=metadata"] == 0)
        elsewhere.rename(log_dir)
        after = running.awaited(lambda seen: seen["tieredctl_exporter_part_up", "part=metadata"] == 1)
        running.stop()

    def of_metadata(samples: Samples) -> set[str]:
        others = ("tieredctl_exporter", "tieredctl_build")
        return {key[0] for key in samples if not key[0].startswith(others)}

    assert at_first["tieredctl_exporter_part_up", "part=metadata"] == 0
    assert of_metadata(gone) == set()
    assert of_metadata(after) == of_metadata(known) != set()
    assert after["tieredctl_exporter_failures_total", "part=metadata"] >= 1
    assert after["tieredctl_exporter_metadata_readings_total",] == 1
    for seen in (known, gone, after):
        assert seen["tieredctl_exporter_part_up", "part=results"] == 0
        assert ("tieredctl_orphaned_objects",) not in seen
    assert f"is the result of another cluster: {OTHER_CLUSTER_ID}, not {CLUSTER_ID}" in running.said


def test_metadata_with_an_event_that_cannot_be_read_is_not_complete_and_has_no_sums(tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"neither JSON nor an event", *copied(2, 10, 19))

    with exporter("--log-dir", tmp_path) as running:
        samples = running.awaited(is_up)
        assert running.stop(signal.SIGHUP) == 0, running.said

    assert samples["tieredctl_metadata_complete",] == 0
    assert samples["tieredctl_metadata_undecodable_events", "metadata_partition=0"] == 1
    assert not any(key[0] in ("tieredctl_remote_bytes", "tieredctl_stuck_copies") for key in samples)


def test_a_result_that_is_not_there_yet_is_no_failure_and_one_that_is_damaged_leaves_what_was_read_before(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    places: tuple[str | Path, ...] = ("--log-dir", cluster.log_dir, *cluster.store)
    scan, kept, marks = tmp_path / "scan.json", tmp_path / "kept.json", tmp_path / "marks"
    kept.write_text(tieredctl("orphans", "scan", *places, "-o", "json").out)
    marks.mkdir()

    with exporter(*places, "--result", scan, "--result", marks) as running:
        before = running.awaited(is_up)
        shutil.copy(kept, scan)
        known = running.awaited(lambda seen: seen.get(("tieredctl_orphaned_objects",)) == ORPHANS)
        for damage in (_cut, Path.mkdir, _make_huge):
            scan.unlink()
            damage(scan)
            meanwhile = running.awaited(lambda seen: seen["tieredctl_exporter_part_up", "part=results"] == 0)
            assert meanwhile["tieredctl_orphaned_objects",] == ORPHANS
            scan.rmdir() if scan.is_dir() else scan.unlink()
            shutil.copy(kept, scan)
            running.awaited(is_up)
        scan.unlink()
        vanished = running.awaited(lambda seen: not is_up(seen))
        running.stop(signal.SIGTERM)

    assert not {key for key in before if key[0] == "tieredctl_orphaned_objects" or "part=results" in key}
    assert is_up(known)
    assert vanished["tieredctl_exporter_part_up", "part=results"] == 0
    assert f"There is no {scan}." in running.said


def test_more_topics_than_series_are_one_and_none_is_lost(tmp_path: Path) -> None:
    partitions = [replace(PARTITION, topic_id=segment_id(number), topic=topic) for number, topic in enumerate(TOPICS)]
    events = [
        event
        for number, partition in enumerate(partitions)
        for event in copied(number, 0, 9, partition=partition, segment_size_in_bytes=100 * (number + 1))
    ]
    write_events(tmp_path, *events)

    with exporter("--log-dir", tmp_path, "--max-topics", "2") as running:
        samples = running.awaited(lambda seen: ("tieredctl_topics_without_series",) in seen)

    sizes = {key[1]: value for key, value in samples.items() if key[0] == "tieredctl_remote_bytes"}
    assert sizes == {'topic=hostile "\\\n{}': 200, "topic=large": 300, "topic=(other)": 100}
    assert samples["tieredctl_topics_without_series",] == 1


def _cut(file: Path) -> None:
    file.write_text('{"kind": "RemoteObjects", "items": [')


def _make_huge(file: Path) -> None:
    file.touch()
    os.truncate(file, 1 << 40)


def test_wrong_use_is_a_sentence(cluster: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        for words in (
            ("--listen", f"127.0.0.1:{port}"),
            ("--listen", "nowhere"),
            ("--listen", "127.0.0.1:65536"),
            ("--listen", "::1:80"),
            ("--listen", "192.0.2.1:0"),
            ("--interval", "0s"),
            ("--interval", "99999999999999d"),
            ("--max-topics", "-1"),
        ):
            outcome = tieredctl("exporter", "--log-dir", cluster.log_dir, *words)
            assert (outcome.exit_code, outcome.out, "Traceback" in outcome.err) == (2, "", False), words
    assert tieredctl("exporter")[:2] == (2, "")


def test_all_contexts_are_watched_each_by_itself(
    cluster: CrashedClusterOnDisk, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store, *_ = cluster.store
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    (tmp_path / "config.yaml").write_text(
        f"contexts: {{here: {{store: '{store}', layout: aiven}}, other: {{store: 'file:{tmp_path}'}}, "
        f'down: {{bootstrapServer: "127.0.0.1:{free_ports(1)[0]}"}}, '
        'broken: {bootstrapServer: "127.0.0.1:1", commandConfig: /no/such}}'
    )

    with exporter("--all-contexts") as running:
        samples = running.awaited(
            lambda seen: (
                seen.get(("tieredctl_exporter_part_up", "context=down", "part=cluster")) == 0
                and seen.get(("tieredctl_exporter_up", "context=here")) == 1
                and seen.get(("tieredctl_exporter_up", "context=other")) == 1
            )
        )
        assert running.stop(signal.SIGTERM) == 0, running.said

    assert {
        name: samples["tieredctl_exporter_up", f"context={name}"] for name in ("here", "other", "down", "broken")
    } == {
        "here": 1,
        "other": 1,
        "down": 0,
        "broken": 0,
    }
    assert ("tieredctl_quarantined_objects", "context=here") in samples
    assert all(any(label.startswith("context=") for label in key[1:]) for key in samples)
    assert "Traceback" not in running.said
    besides = tieredctl("exporter", "--all-contexts", "--store", store)
    assert (besides.exit_code, besides.out) == (2, "")
