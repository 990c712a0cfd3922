"""The command that is printed as the next one works as it is printed; and what there is nothing of is said."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID
from tieredctl.errors import ExitCode

TOPIC = "orders33"
PLACES = ("--log-dir", "data", "--live-topic-ids", "topic-ids.txt", "--store", "file:bucket")


@pytest.fixture
def cluster(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a crashed broker left, with a topic that was deleted; here."""
    folder = tmp_path / "cluster"
    shutil.copytree(captures / CAPTURE, folder)
    files = (file for file in folder.glob("data/*/partition.metadata") if "gone33" not in file.parent.name)
    ids = {line.split()[1] for file in files for line in file.read_text().splitlines() if "topic_id" in line}
    (folder / "topic-ids.txt").write_text("\n".join(sorted(ids)) + "\n")
    monkeypatch.chdir(folder)
    return folder


def following(outcome: Outcome, command: str) -> list[str]:
    """The words of the command that the outcome tells to run next."""
    (line,) = re.findall(rf"tieredctl ({command} .*)$", outcome.err, re.MULTILINE)
    return shlex.split(line)


def test_from_a_scan_to_its_undoing_each_command_is_the_one_printed(cluster: Path, tieredctl: Tieredctl) -> None:
    confirmed = ("--yes", "--cluster-id", CLUSTER_ID)

    scanned = tieredctl("orphans", "scan", *PLACES, "--min-age", "1h", "--topic", TOPIC)
    planned = tieredctl(*following(scanned, "orphans plan"))
    applied = tieredctl(*following(planned, "orphans apply"), *confirmed)
    restored = tieredctl(*following(applied, "orphans restore"))

    assert scanned.exit_code == ExitCode.FINDINGS
    assert [planned.exit_code, applied.exit_code, restored.exit_code] == [ExitCode.CLEAN] * 3, planned.err + applied.err
    assert restored.err.startswith("Put back 33 of 33 objects")
    assert "--offline-metadata" in planned.err
    assert "That is for a cluster that no longer exists" in planned.err


def test_an_empty_plan_is_not_written_and_that_is_said(cluster: Path, tieredctl: Tieredctl) -> None:
    words = ("orphans", "plan", *PLACES, "--topic", "events33", "--to", "nothing.plan")

    planned, document = tieredctl(*words), tieredctl(*words, "-o", "json")

    assert planned.exit_code == document.exit_code == ExitCode.CLEAN
    assert planned.err == "Nothing to remove among 499 objects: nothing.plan is not written.\n"
    assert document.document()["summary"]["planned"] == 0
    assert not list(cluster.glob("*.plan*"))
    assert not list(cluster.glob(".tieredctl-*"))


def test_purge_says_what_is_there_and_not_old_enough(cluster: Path, tieredctl: Tieredctl) -> None:
    confirmed = ("--yes", "--cluster-id", CLUSTER_ID)
    tieredctl("orphans", "plan", *PLACES, "--min-age", "1h", "--topic", TOPIC, "--to", "orphans.plan")
    tieredctl("orphans", "apply", "orphans.plan", *PLACES[:4], "--offline-metadata", *confirmed)
    words = ("orphans", "purge", "--older-than", "14d", *PLACES, "--offline-metadata", *confirmed)

    purged, document = tieredctl(*words), tieredctl(*words, "-o", "json")

    assert purged.exit_code == ExitCode.CLEAN
    assert re.search(
        r"^Not 14d old yet: 33 copies, 14.0 KiB; the oldest came \d+(s|min) ago\.$", purged.err, re.MULTILINE
    )
    assert document.document()["summary"]["young"] == 33
