"""`--report FILE`: a page of each command that has it, written whole or not at all; no other file is lost for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import ORPHANS, CrashedClusterOnDisk
from tests.metadata_logs import COPIED, FIRST_TIMESTAMP_MS, TOPIC_ID, started, updated, write_events
from tests.rigs.page_rows import rows_of
from tests.rigs.ports import free_ports
from tieredctl.errors import ExitCode


@pytest.fixture
def places(captures: Path) -> tuple[str | Path, ...]:
    cluster = captures / "kafka-4.3.1"
    return "--log-dir", cluster / "data", "--store", f"file:{cluster / 'remote' / 'kafka-tiered-storage'}"


def test_no_command_of_one_context_stands_on_the_page_of_all(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, page = tmp_path / "config.yaml", tmp_path / "page.html"
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    store = f"{{store: '{cluster.store[1]}', layout: aiven}}"
    config.write_text(f"contexts:\n  here: {store}\n  there: {store}\n")

    outcome = tieredctl("status", "--all-contexts", "--report", page)

    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    assert [row[0] for row in rows_of(page, 1)] == ["here", "there"]
    assert "tieredctl --context NAME status" in page.read_text()


def test_an_earlier_page_is_replaced(tieredctl: Tieredctl, places: tuple[str | Path, ...], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.touch()
    for level in ("headers", "listing"):
        outcome = tieredctl("verify", *places, "--level", level, "--report", page)
        assert outcome.exit_code == ExitCode.CLEAN, outcome.err

    assert "Level</dt><dd>listing" in page.read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_where_no_page_can_be_written_the_work_does_not_begin(
    tieredctl: Tieredctl, places: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where matplotlib is missing, or something else is there."""
    text = "<!DOCTYPE html>\nmine"
    (tmp_path / "orders.html").write_text(text)
    (tmp_path / "folder").mkdir()
    for name in ("missing/page.html", "folder", "orders.html", "without-matplotlib.html"):
        if name == "without-matplotlib.html":
            monkeypatch.setattr("tieredctl.report.extra.find_spec", lambda _: None)

        outcome = tieredctl("verify", *places, "--report", tmp_path / name)

        assert (outcome.exit_code, outcome.out) == (ExitCode.FAILURE, ""), name
        assert {file.name for file in tmp_path.iterdir()} == {"folder", "orders.html"}, name
    assert (tmp_path / "orders.html").read_text() == text


def test_a_page_has_no_secret_of_the_settings_that_it_is_about_or_of_the_line(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    of_settings, of_line, settings = (tmp_path / name for name in ("s.html", "l.html", "server.properties"))
    settings.write_text(
        "remote.log.storage.system.enable=true\nssl.keystore.password=hunter2\n"
        "rsm.config.aws.secret.access.key=hunter2\nremote.log.metadata.manager.listener.name=hunter\n"
    )
    secret = ("--layout-option", "secret.access.key=hunter2")

    tieredctl("doctor", "config", settings, "--report", of_settings)
    outcome = tieredctl("status", "--log-dir", cluster.log_dir, *cluster.store, *secret, "--report", of_line)

    assert outcome.exit_code == ExitCode.FINDINGS, outcome.err
    for page, shown in ((of_settings, "server.properties"), (of_line, "--layout-option")):
        assert shown in page.read_text()
        assert "hunter2" not in page.read_text()


def test_where_nothing_was_verified_nothing_is_called_intact(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    nothing = ("--topic", "events33", "--subset", "1/100000", "--level", "full")

    outcome = tieredctl("verify", "--log-dir", cluster.log_dir, *cluster.store, *nothing, "--report", page)

    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    assert "intact" not in outcome.err
    assert '<header class="unknown">' in page.read_text()
    assert "<h1>Verified 0 segments" in page.read_text()


def test_what_findings_are_about_is_seen_before_they_are_opened(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"

    found = tieredctl("metadata", "stuck", "--log-dir", cluster.log_dir, "--report", page, "-o", "json").document()

    for code in ("copy-stuck", "delete-stuck"):
        subjects = [item["subject"] for item in found["items"] if item["code"] == code]
        seen = f'<p class="about">{", ".join(subjects[:3])}, and {len(subjects) - 3} more findings</p>'
        assert seen in page.read_text()


def test_what_is_stuck_is_not_among_the_segments_that_were_verified(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"

    outcome = tieredctl("verify", "--log-dir", cluster.log_dir, *cluster.store, "--report", page, "-o", "json")

    segments = outcome.document()["summary"]["segments"]
    assert outcome.document()["summary"]["findings"] == 64
    assert f'<th scope="row">nothing wrong, as far as read</th><td>{segments}</td>' in page.read_text()


@pytest.mark.parametrize("share", [(), ("--subset", "1/3")], ids=["all", "a share"])
def test_only_what_is_outside_the_share_is_left_out_by_it(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path, share: tuple[str, ...]
) -> None:
    where = ("verify", "--log-dir", cluster.log_dir, *cluster.store, "--level", "listing")
    whole = tieredctl(*where, "-o", "json").document()["summary"]
    page = tmp_path / "page.html"

    summary = tieredctl(*where, *share, "--report", page, "-o", "json").document()["summary"]

    text = page.read_text()
    left_out = whole["segments"] - summary["segments"]
    assert (left_out > 0) is bool(share)
    assert f'<th scope="row">outside --subset</th><td>{left_out}</td>' in text
    assert f'<th scope="row">unfinished, removed, or of a deleted topic</th><td>{whole["skipped"]}</td>' in text
    assert (f"<li>Left out by --subset: {left_out} segments.</li>" in text) is bool(share)
    assert ("Left out by --subset" in text) is bool(share)


def test_the_upload_delay_is_counted_from_the_newest_record(tieredctl: Tieredctl, tmp_path: Path) -> None:
    page, minute = tmp_path / "page.html", 60_000
    without_times = started(2, 10, 19, max_timestamp_ms=-1)
    write_events(
        tmp_path / "log",
        started(1, 0, 9, max_timestamp_ms=FIRST_TIMESTAMP_MS),
        updated(1, COPIED, event_timestamp_ms=FIRST_TIMESTAMP_MS + 90 * minute),
        without_times,
        updated(2, COPIED, event_timestamp_ms=FIRST_TIMESTAMP_MS + 91 * minute),
    )

    outcome = tieredctl("status", "--log-dir", tmp_path / "log", "--report", page)

    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    assert '<th scope="row">2023-11-14 23:43:20</th><td>1</td><td>90 min</td><td>90 min</td>' in page.read_text()
    assert rows_of(page, 2) == [["t", TOPIC_ID, 2, [2000, "2.0 KiB"]]]


def test_each_verification_of_a_folder_is_on_the_page(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page, results = tmp_path / "status.html", tmp_path / "results"
    results.mkdir()
    (results / "notes.txt").write_text("of nobody's concern")
    places = ("--log-dir", cluster.log_dir, *cluster.store)
    verify = ("verify", *places, "--level", "listing", "--subset")
    (results / "monday.json").write_text(tieredctl(*verify, "1/3", "-o", "json").out)
    tieredctl(*verify, "2/3", "--metrics-file", results / "tuesday.prom")

    tieredctl("status", *places, "--result", results, "--report", page)

    assert "Coverage of verifications" in page.read_text()
    assert len(re.findall(r'<th scope="row">20\d\d-[^<]*%, \d+ finding', page.read_text())) == 2


def test_the_page_of_a_scan_has_each_orphan_whatever_is_printed(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    tables = []
    for output in ("table", "json"):
        page = tmp_path / "orphans.html"
        assert cluster.scan("--report", page, "-o", output).exit_code == ExitCode.FINDINGS
        tables.append(rows_of(page, 2))

    assert len(tables[0]) == ORPHANS
    assert tables[0] == tables[1]


def test_a_scan_of_a_list_of_keys_claims_no_sizes_and_no_ages(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    keys, page = tmp_path / "keys", tmp_path / "orphans.html"
    keys.write_text("\n".join(key for key in cluster.objects()))

    cluster.scan("--report", page, "--key-list", keys)

    text = page.read_text()
    assert "Sizes and ages are unknown" in text
    assert "SIZE" not in text
    assert "bytes by age" not in text


def test_the_page_of_a_status_says_what_it_does_not_know(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page = tmp_path / "status.html"

    outcome = tieredctl("status", "--log-dir", cluster.log_dir, *cluster.store, "--report", page)

    text = page.read_text()
    assert outcome.exit_code == ExitCode.FINDINGS
    for part in ("64 warnings", "lag: unknown.", "orphans: unknown", "Upload delay over time", "events33"):
        assert part in text


def test_where_nothing_was_looked_for_nothing_is_said_to_be_found(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    page, server = tmp_path / "page.html", f"127.0.0.1:{free_ports(1)[0]}"
    for words, code, heading in (
        (("status", *cluster.store), ExitCode.CLEAN, "What is wrong is unknown"),
        (("remote", "du", *cluster.store), ExitCode.CLEAN, "499 objects, 3.3 MiB."),
        (
            ("status", "--bootstrap-server", server, *cluster.store),
            ExitCode.INCOMPLETE,
            "The answer is incomplete",
        ),
    ):
        assert tieredctl(*words, "--report", page).exit_code == code, words
        assert f"<h1>{heading}</h1>" in page.read_text()
    assert "cluster: unknown: " in page.read_text()
