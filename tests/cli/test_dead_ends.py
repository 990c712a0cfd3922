"""Where an operator would not know how to go on, a command says it: what is meant, what to give, or that nothing is."""

from __future__ import annotations

import shlex
import shutil
from io import StringIO
from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import CrashedClusterOnDisk
from tests.metadata_logs import copied, write_events
from tieredctl.cli.commands.offsets import _TEXTS
from tieredctl.cli.commands.removal_outcome import ReceiptRow
from tieredctl.cli.output import TableColumn, write_table
from tieredctl.cli.result_listing import columns_of
from tieredctl.errors import ExitCode
from tieredctl.ops.cluster.offsets import PartitionOffsets
from tieredctl.ops.tiering.topic_status import PartitionStatus

SEGMENT = "V_QmtSRAS-qC_YrVmRd2HA"
STORE = "remote/kafka-tiered-storage"


@pytest.fixture
def capture(captures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a broker left, here."""
    folder = captures / "kafka-4.3.1"
    monkeypatch.chdir(folder)
    return folder


def test_a_store_given_some_folders_too_high_is_named_as_it_is_meant(
    capture: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    assert tieredctl("remote", "du", "--store", f"file:{tmp_path}").exit_code == ExitCode.USAGE
    for folders in ("a", "a/b"):
        high = tmp_path / f"it's {len(folders)}"
        shutil.copytree(capture / STORE, high / folders)

        refused = tieredctl("remote", "du", "--store", f"file:{high}")
        url = shlex.split(refused.err.partition("Did you mean --store ")[2].partition("? Otherwise")[0])
        meant = tieredctl("remote", "du", "--store", *url)

        assert (refused.exit_code, meant.exit_code, "slow7" in meant.out) == (ExitCode.USAGE, ExitCode.CLEAN, True)


def test_an_id_with_a_wrong_character_is_not_called_too_short(capture: Path, tieredctl: Tieredctl) -> None:
    mistyped = tieredctl("metadata", "history", f"{SEGMENT[:-1]}B", "--log-dir", "data")
    cut = tieredctl("metadata", "history", SEGMENT[:-1], "--log-dir", "data")

    assert mistyped.exit_code == cut.exit_code == ExitCode.USAGE
    assert ["22 characters" in outcome.err for outcome in (mistyped, cut)] == [False, True]


def test_a_time_is_read_before_anything_is_asked(tieredctl: Tieredctl) -> None:
    words = ("explain", "orders:0", "--bootstrap-server", "localhost:1", "--timestamp", "yesterday")

    assert tieredctl(*words).exit_code == ExitCode.USAGE


def test_an_offset_that_is_none_is_not_shown_as_one_that_nobody_told() -> None:
    offsets = dict.fromkeys(("earliest", "earliestLocal", "latestTiered", "earliestPendingUpload", "latest"))
    errors = {"earliestPendingUpload": "UNSUPPORTED_VERSION", "latest": "LEADER_NOT_AVAILABLE"}
    expected = {"EARLIEST": "7", "LATEST-TIERED": "-", "PENDING-UPLOAD": "unsupported", "LATEST": "unknown"}

    item = {**offsets, "earliest": 7, "errors": errors}

    assert {one.heading: one.text(item, wide=False) for one in OFFSETS if one.heading in expected} == expected


def test_that_nothing_is_stuck_is_said_to_people_alone(tmp_path: Path, tieredctl: Tieredctl) -> None:
    write_events(tmp_path, *copied(1, 0, 9))
    words = ("metadata", "stuck", "--log-dir", tmp_path)

    assert tieredctl(*words).err != tieredctl(*words, "-q").err == tieredctl(*words, "-o", "json").err == ""
    assert tieredctl(*words, "-o", "csv").out == "code,severity,subject,message,evidence,remedy\n"


def test_the_quarantine_of_one_plan_is_put_back_by_the_command_that_is_printed(
    planned: CrashedClusterOnDisk, tieredctl: Tieredctl
) -> None:
    planned.apply()

    shown = tieredctl("orphans", "quarantine", "ls", *planned.store)
    restored = tieredctl(*shlex.split(shown.err.partition("tieredctl ")[2]))

    assert restored.exit_code == ExitCode.CLEAN
    assert "PLAN-ID" not in shown.err
    assert restored.err.startswith("Put back ")


OFFSETS = columns_of(PartitionOffsets, **_TEXTS)
NARROW: list[tuple[tuple[TableColumn, ...], dict[str, object], str]] = [
    (columns_of(ReceiptRow), {"key": "k" * 90, "status": "failed", "error": "there is no copy"}, "KEY ERROR"),
    (columns_of(PartitionStatus), dict.fromkeys(("lagMs", "notTiered"), 7), "NOT-TIERED LAG LATEST"),
    (OFFSETS, {"latest": 1 << 60, "earliest": 1 << 60, "latestTiered": 1 << 60}, "LATEST EARLIEST"),
]
"""What failed and why, how far tiering lags, where a log ends."""


def test_what_was_asked_for_stays_in_a_narrow_table() -> None:
    for columns, item, asked in NARROW:
        table = StringIO()
        left_out = write_table(columns, [item], table, wide=False, width=80)

        assert set(asked.split()) <= set(table.getvalue().splitlines()[0].split())
        assert not set(asked.split()) & set(left_out)


def test_a_plan_that_is_only_shown_names_what_makes_the_change(
    capture: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    shutil.copytree(capture / STORE, tmp_path / "store")
    (index,) = (tmp_path / "store").rglob(f"*{SEGMENT}.index")
    words = ("recover", "indexes", SEGMENT, "--log-dir", "data", "--store", f"file:{tmp_path / 'store'}")

    intact = tieredctl(*words)
    index.unlink()
    missing, rehearsed = tieredctl(*words), tieredctl(*words, "--apply", "--dry-run")

    assert "--apply" not in intact.err + rehearsed.err
    assert missing.err.endswith("Nothing was changed: --apply makes the change.\n")


def test_a_key_file_of_a_context_means_the_same_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    options = ("--layout-option", "private-key=keys/rsm.pem", "--layout-option", "prefix=tiered")

    tieredctl("context", "add", "prod", "--store", "file:bucket", "--layout", "aiven", *options)
    shown = {item["setting"]: item["value"] for item in tieredctl("context", "show", "prod", "-o", "jsonl").lines()}

    assert shown["layoutOptions"] == [f"private-key={tmp_path / 'keys/rsm.pem'}", "prefix=tiered"]


def test_a_store_without_a_price_is_told_how_to_get_one(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    (tmp_path / "config.yaml").write_text("{}\n")
    words = ("estimate", "cost", "--log-dir", "data", "--store", f"file:{capture / STORE}")

    refused = tieredctl(*words)
    entry = yaml.safe_load(refused.err.partition("such as ")[2].strip().removesuffix("."))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"prices": [entry]}))
    priced = tieredctl(*words)

    assert refused.exit_code == ExitCode.USAGE
    assert str(tmp_path / "config.yaml") in refused.err
    assert priced.exit_code == ExitCode.CLEAN


def test_the_moments_of_a_segments_events_can_be_read(capture: Path, tieredctl: Tieredctl) -> None:
    words = ("metadata", "history", SEGMENT, "--log-dir", "data")

    first = tieredctl(*words, "-o", "jsonl").lines()[0]["eventTimestampMs"]

    assert first == 1_795_252_437_163
    assert tieredctl(*words).out.splitlines()[1].split()[1] == "2026-11-21T09:13:57.163Z"
    assert tieredctl(*words, "-o", "wide").out.splitlines()[1].split()[1] == str(first)


def test_objects_that_a_scan_cannot_judge_are_counted_with_the_way_to_see_them(
    capture: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    shutil.copytree(capture / STORE, tmp_path / "store")
    words = ("orphans", "scan", "--log-dir", "data", "--store", f"file:{tmp_path / 'store'}")

    all_known = tieredctl(*words)
    (tmp_path / "store/orders7-2.tar.gz").write_bytes(bytes(4096))
    one_unknown = tieredctl(*words)
    (shown,) = [one for one in tieredctl(*words, "-o", "jsonl").lines() if one["status"] == "unknown"]

    assert "unknown" not in all_known.err
    assert one_unknown.err.endswith(
        "1 object is unknown, 4.0 KiB, and not removed: -o jsonl shows each with its evidence.\n"
    )
    assert shown["key"] == "orders7-2.tar.gz"
