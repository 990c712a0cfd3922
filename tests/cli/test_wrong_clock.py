"""A clock that is years behind: ages of what is dated after now are unknown, and nothing is said not to be stuck."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import this_process
from tests.cli.crashed_cluster import CAPTURE
from tieredctl.errors import ExitCode

YEARS_AGO = ("--now", "2024-01-01T00:00:00Z")


def test_ages_of_what_is_dated_after_now_are_unknown(captures: Path) -> None:
    data, bucket = captures / CAPTURE / "data", captures / CAPTURE / "bucket"
    log, store = ("--log-dir", data), ("--store", f"file:{bucket}")
    commands = {
        "metadata stuck": log,
        "status": log,
        "verify": (*log, *store, "--level", "listing"),
        "topic status": ("orders33", *log, "--kraft-snapshot", data / "__cluster_metadata-0"),
    }
    for command, words in commands.items():
        outcome = this_process(*command.split(), *words, *YEARS_AGO, "-o", "json")

        document = outcome.document()
        found = document["summary"].get("findings")
        findings = [*document["items"], *(found if isinstance(found, list) else [])]
        unknown = [one for one in findings if one.get("code") == "check-not-made" and one["subject"] == "ages"]
        assert (outcome.exit_code, len(unknown)) == (ExitCode.INCOMPLETE, 1), command
        assert not [one for one in findings if one.get("code") in ("copy-stuck", "delete-stuck")], command


def test_status_does_not_count_what_may_be_stuck_as_none(captures: Path) -> None:
    outcome = this_process("status", "--log-dir", captures / CAPTURE / "data", *YEARS_AGO, "-o", "json")

    assert outcome.document()["summary"]["stuck"] is None
