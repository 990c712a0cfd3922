"""What the forge runs: targets that the Makefile has, in a workflow that its linter takes."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.house.test_packaging import ROOT, locked_versions
from tests.rigs.availability import rig_unavailable
from tests.rigs.go_program import go_program
from tests.rigs.prerequisites import RigMissing

WORKFLOW = ROOT / ".github/workflows/tieredctl.yml"
ACTIONLINT = ("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12")


def jobs() -> dict[str, Any]:
    return dict(yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"])


def test_it_makes_what_the_makefile_has_and_runs_every_share() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = jobs()["tests"]["strategy"]["matrix"]["target"]
    made = re.findall(r"\bmake ([a-z-]+)", WORKFLOW.read_text(encoding="utf-8"))

    assert all(re.search(rf"^{target.split()[0]}:", makefile, re.MULTILINE) for target in [*targets, *made])
    (shares,) = re.findall(r"^SHARES := (\d+)$", makefile, re.MULTILINE)
    assert targets == ["test", *(f"exhaustive SHARE={number + 1}/{shares}" for number in range(int(shares)))]


def test_only_what_was_tested_is_published_and_no_secret_is_needed() -> None:
    publish = jobs().pop("publish")

    assert set(publish["needs"]) == {"lint", "tests", "wheels"}
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")
    uv = locked_versions(ROOT / "requirements.lock")["uv"]
    assert f"--spec uv=={uv} uv publish --trusted-publishing always" in publish["steps"][-1]["run"]


@pytest.mark.exhaustive
def test_actionlint_accepts_it() -> None:
    try:
        linter = go_program(*ACTIONLINT)
    except RigMissing as missing:
        rig_unavailable(str(missing))

    done = subprocess.run([linter, WORKFLOW], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (0, "")
