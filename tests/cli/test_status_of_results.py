"""`status` counts what the last scan and the last verification found, until there are later ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CrashedClusterOnDisk


class Verified(NamedTuple):
    """A store that lost an index, and what a verification of it left, as a document and as metrics."""

    status: Callable[..., Outcome]
    results: tuple[Path, Path]


@pytest.fixture
def verified(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> Verified:
    capture, results = captures / "kafka-4.3.1", (tmp_path / "verify.json", tmp_path / "verify.prom")
    store = shutil.copytree(capture / "remote" / "kafka-tiered-storage", tmp_path / "store")
    next(store.rglob("*YGh7W7-vQHekQhlkpKRLsg.timeindex")).unlink()
    places = ("--log-dir", capture / "data", "--store", f"file:{store}")
    words = ("verify", *places, "-o", "json", "--metrics-file", results[1])
    results[0].write_text(tieredctl(*words).out)

    def status(*more: str | Path) -> Outcome:
        return tieredctl("status", *places, *more)

    return Verified(status, results)


def test_without_results_findings_are_those_of_the_metadata(verified: Verified) -> None:
    said = verified.status()

    assert said.exit_code == 0
    assert "none in the metadata" in said.out


def test_loss_that_the_last_verification_found_comes_first_and_is_the_exit_code(verified: Verified) -> None:
    """A code can be ignored in results too, but no subject, which they do not tell."""
    for result in verified.results:
        said = verified.status("--result", result)

        assert said.exit_code == 4
        assert "none now; 1 critical in the last verification" in said.out.splitlines()[1]
        assert ", 1 critical, " in said.out.splitlines()[-1]
        for ignored, code in (
            ("object-missing", 0),
            ("object-missing:YGh7W7-vQHekQhlkpKRLsg", 4),
            ("batch-corrupt", 4),
        ):
            assert verified.status("--result", result, "--ignore", ignored).exit_code == code, (result, ignored)


def test_orphans_of_the_last_scan_need_attention(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    scan = tmp_path / "scan.json"
    scan.write_text(tieredctl("orphans", "scan", "--log-dir", cluster.log_dir, *cluster.store, "-o", "json").out)

    for tolerated, code in (((), 3), (("--fail-on", "error"), 0)):
        assert tieredctl("status", *cluster.store, "--result", scan, *tolerated).exit_code == code
