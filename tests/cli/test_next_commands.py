"""The command that is printed as the next one works as it is printed; and what there is nothing of is said."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID
from tests.metadata_logs import PARTITION, copied, write_events
from tieredctl.cli import running_words
from tieredctl.cli.commands.status import _row
from tieredctl.cli.findings.remedies import Remedies
from tieredctl.cli.typed_words import typed
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.pasteable import pasteable
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.status.board import Status
from tieredctl.ops.status.facts import ClusterFacts, Lag
from tieredctl.ops.tiering.disable import steps_of_emptying
from tieredctl.wiring.status import StatusPlaces

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


@pytest.mark.parametrize("topic", ["-x", "--output", "-o", "- a"])
def test_a_topic_that_looks_like_an_option_is_an_argument_of_the_remedy(
    topic: str, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    partition = replace(PARTITION, topic=topic)
    write_events(tmp_path, *copied(1, 0, 9, partition=partition))
    found = Finding(FindingCode.EPOCH_MISMATCH, topic, "", {"topic": topic, "partition": 0})
    remedy = Remedies(["metadata", "stuck", "--log-dir", str(tmp_path)]).pasteable(found.remedy)

    outcome = tieredctl(*shlex.split(remedy)[1:])

    assert (outcome.exit_code, outcome.err) == (0, "")
    assert "LEADER-EPOCH" in outcome.out


def test_so_it_is_in_the_line_of_status_that_names_it(tmp_path: Path) -> None:
    facts = ClusterFacts(is_live=True, lag=Lag(offsets=5, since_ms=1, where="-x"))
    (lag,) = (line for line in Status(1, facts).lines() if line.about == "lag")

    token = running_words.set(("status", "--bootstrap-server", "b:1"))
    try:
        command = _row(lag, StatusPlaces())["command"]
    finally:
        running_words.reset(token)

    assert command == "tieredctl topic status --bootstrap-server b:1 -- -x"


@pytest.mark.parametrize("topic", ["-x", "--apply"])
def test_so_it_is_in_the_steps_that_empty_its_remote_storage(topic: str) -> None:
    steps = [step for step in steps_of_emptying(TopicSettings(topic, {})) if "tieredctl " in step]

    named = [typed(shlex.split(step[step.index("tieredctl ") :])[1:]) for step in steps]

    assert [one.arguments for one in named] == [("…", topic)] * 4
    assert [one.options for one in named if one.command == "topic disable"] == [
        (("--stop-copying", ""), ("--apply", "")),
        (("--delete", ""), ("--apply", "")),
    ]


def test_so_is_a_plan_in_the_command_that_applies_it(cluster: Path, tieredctl: Tieredctl) -> None:
    planned = tieredctl("orphans", "plan", *PLACES, "--to", "-x.plan", "--min-age", "1h", "--topic", TOPIC)

    orphans, apply, *words = following(planned, "orphans apply")
    outcome = tieredctl(orphans, apply, "--dry-run", *words)

    assert (outcome.exit_code, words[-2:]) == (0, ["--", "-x.plan"]), outcome.err


@pytest.mark.parametrize(
    "name",
    [b"new\nline", b"tab\t1", b"\xff\xfe9", "é\n".encode(), b"it's\\\x1b[31m", b"-\n", b"plain", b"a; rm ~\n$(reboot)"],
)
def test_a_name_of_any_bytes_is_in_one_line_that_bash_takes_for_that_name(name: bytes) -> None:
    command = pasteable("tieredctl orphans show {file} …", {"file": os.fsdecode(name)})

    script = f'tieredctl() {{ printf %s "${{@: -1}}"; }}; {command.replace(" …", "")}'
    taken = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60).stdout

    assert taken == name
    assert command.isprintable()
    assert (" -- " in command) == name.startswith(b"-")


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


@pytest.mark.parametrize("receipts", ["file", "store"])
def test_the_command_that_undoes_a_plan_takes_a_name_with_spaces_for_one_word(
    cluster: Path, tieredctl: Tieredctl, receipts: str
) -> None:
    cluster.joinpath("bucket").rename("a bucket")
    places = [word.replace("file:bucket", "file:a bucket") for word in PLACES]
    tieredctl("orphans", "plan", *places, "--min-age", "1h", "--topic", TOPIC, "--to", "the plan")
    where = ("--receipts", "store") if receipts == "store" else ()

    applied = tieredctl(
        *("orphans", "apply", "the plan", "--offline-metadata", "--min-age", "1h", *PLACES[:4], *where),
        *("--yes", "--cluster-id", CLUSTER_ID),
    )
    restored = tieredctl(*following(applied, "orphans restore"))

    assert (applied.exit_code, restored.exit_code) == (ExitCode.CLEAN, ExitCode.CLEAN), restored.err


def test_an_empty_plan_is_not_written_and_leaves_no_earlier_one_in_its_place(
    cluster: Path, tieredctl: Tieredctl
) -> None:
    """It would be applied as if it had just been made."""
    words = ("orphans", "plan", *PLACES, "--min-age", "1h", "--to", "orphans.plan", "--topic")

    planned, document = tieredctl(*words, "events33"), tieredctl(*words, "events33", "-o", "json")
    none = list(cluster.glob("*.plan*"))
    tieredctl(*words, TOPIC)
    refused = tieredctl(*words, "events33")
    stayed = (cluster / "orphans.plan").exists()
    forced = tieredctl(*words, "events33", "--force")

    assert (planned.exit_code, document.exit_code, none) == (ExitCode.CLEAN, ExitCode.CLEAN, [])
    assert planned.err == "Nothing to remove among 499 objects: orphans.plan is not written.\n"
    assert document.document()["summary"]["planned"] == 0
    assert (refused.exit_code, stayed, forced.exit_code) == (ExitCode.FAILURE, True, ExitCode.CLEAN)
    assert not [*cluster.glob("*.plan*"), *cluster.glob(".tieredctl-*")]


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


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_a_plan_shows_each_object_that_it_would_remove(cluster: Path, tieredctl: Tieredctl, output: str) -> None:
    tieredctl("orphans", "plan", *PLACES, "--min-age", "1h", "--topic", TOPIC, "--to", "orphans.plan")
    before = (cluster / "orphans.plan").read_bytes()

    shown = tieredctl("orphans", "show", "orphans.plan", "-o", output)

    assert shown.exit_code == ExitCode.CLEAN
    assert shown.out.count("copy-never-finished") >= 33
    assert "removes 33 of 499 objects, 14.0 KiB from file:" in shown.err
    assert (cluster / "orphans.plan").read_bytes() == before
