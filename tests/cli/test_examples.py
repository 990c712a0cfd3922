"""The ready-made files for timers: what they run is what the command line takes."""

from __future__ import annotations

import configparser
import os
import subprocess
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tests.cli.command_line import REPOSITORY
from tieredctl.cli.command_tree import command_of
from tieredctl.errors import TieredctlError

EXAMPLES = REPOSITORY / "examples"
RECORDER = """#!/bin/sh
printf "%s\\n" "$#" "$@" >> "$RECORD"
while [ $# -gt 0 ]; do
    if [ "$1" = --to ] && [ -z "${NOTHING_TO_REMOVE:-}" ]; then : > "$2"; fi
    shift
done
exit "${EXIT_CODE:-0}"
"""
SETTINGS = {"BOOTSTRAP_SERVER": "localhost:9092", "CLUSTER_ID": "c1", "STORE": "s3://bucket/a b"}


def run(folder: Path, **settings: str) -> tuple[int, list[list[str]]]:
    """Exit code, and the command lines that the script would have run."""
    recorder = folder / "bin/tieredctl"
    recorder.parent.mkdir()
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    record = folder / "record"
    record.touch()
    environment = {"PATH": f"{recorder.parent}:{os.environ['PATH']}", "RECORD": str(record), "STATE_DIR": str(folder)}
    done = subprocess.run([EXAMPLES / "remove-orphans.sh"], env=environment | settings, check=False, timeout=30)
    words = record.read_text().splitlines()
    lines = []
    while words:
        count = int(words[0])
        lines.append(words[1 : count + 1])
        words = words[count + 1 :]
    return done.returncode, lines


def parsed(words: list[str]) -> dict[str, Any]:
    """The options that the command line understands; in a context of its own, as each command runs: options are kept
    there for as long as it does."""
    return copy_context().run(_parsed, words)


def _parsed(words: list[str]) -> dict[str, Any]:
    command: Any = command_of(words)
    with command.make_context("tieredctl", list(words)) as context:
        for word in words[:2]:
            command = command.get_command(context, word)
        with command.make_context(words[1], list(words[2:]), parent=context) as verb:
            return dict(verb.params)


def test_the_script_plans_carries_out_and_purges(tmp_path: Path) -> None:
    code, lines = run(tmp_path, **SETTINGS)

    plan, apply, purge = map(parsed, lines)
    assert code == 0
    assert [line[1] for line in lines] == ["plan", "apply", "purge"]
    assert plan["store"] == purge["store"] == "s3://bucket/a b"
    assert str(plan["to"]) == str(apply["plan"])
    assert apply["yes"]
    assert purge["yes"]
    assert apply["cluster_id"] == purge["cluster_id"] == "c1"


def test_the_script_only_purges_without_orphans_and_stops_at_the_first_failure(tmp_path: Path) -> None:
    for settings, expected in (
        ({"NOTHING_TO_REMOVE": "1"}, (0, ["plan", "purge"])),
        ({"EXIT_CODE": "5"}, (5, ["plan"])),
    ):
        folder = tmp_path / "".join(settings)
        folder.mkdir()
        code, lines = run(folder, **settings, **SETTINGS)

        assert (code, [line[1] for line in lines]) == expected, settings


def test_the_script_demands_what_it_needs(tmp_path: Path) -> None:
    for missing in SETTINGS:
        (tmp_path / missing).mkdir()
        code, lines = run(tmp_path / missing, **{name: SETTINGS[name] for name in SETTINGS if name != missing})

        assert (code != 0, lines) == (True, []), missing


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises((typer.TyperException, TieredctlError)):
        parsed(["orphans", "apply", "plan", "--yess"])


def test_the_timer_and_its_service_are_units() -> None:
    for name in ("tieredctl-orphans.service", "tieredctl-orphans.timer"):
        unit = configparser.ConfigParser(strict=True, interpolation=None)
        unit.read_string((EXAMPLES / name).read_text())
        assert "Unit" in unit


def test_the_cron_job_runs_the_script_with_what_it_needs() -> None:
    job = yaml.safe_load((EXAMPLES / "cronjob.yaml").read_text())

    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][0].endswith("remove-orphans.sh")
    assert {variable["name"] for variable in container["env"]} >= set(SETTINGS)
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
