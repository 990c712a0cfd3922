"""A cluster that does not keep its remote log metadata in the topic: nothing is called missing or an orphan."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import CrashedClusterOnDisk
from tieredctl.errors import TieredctlError
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS, TOPIC_BASED, demand_topic_based

OTHER = "com.example.DatabaseMetadataManager"


@pytest.fixture(params=["data", "."])
def log_dir(request: pytest.FixtureRequest, captures: Path, tmp_path: Path) -> Path:
    """Of a broker whose server.properties lies in its log directory, or next to it."""
    data = tmp_path / "data"
    data.mkdir()
    for path in (captures / "kafka-4.3.1/data").iterdir():
        (data / path.name).symlink_to(path)
    (tmp_path / request.param / "server.properties").write_text(f"{METADATA_CLASS}={OTHER}\n")
    return data


@pytest.mark.parametrize(
    "words",
    [
        ("verify",),
        ("orphans", "scan"),
        ("orphans", "plan", "--to", "plan"),
        ("orphans", "purge", "--offline-metadata", "--older-than", "24h", "--layout", "local"),
        ("recover", "metadata"),
        ("recover", "indexes", "zYJ8cWbWS6Wrn_UH97CRKw"),
    ],
)
def test_it_is_refused_by_its_name(
    log_dir: Path, captures: Path, tieredctl: Tieredctl, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_dir.parent)
    store = f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}"

    outcome = tieredctl(*words, "--log-dir", log_dir, "--store", store)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert f"{METADATA_CLASS} is {OTHER}, which does not keep its metadata in __remote_log_metadata." in outcome.err


def test_a_plan_is_not_applied(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    before = planned.objects()
    data = tmp_path / "data"
    shutil.copytree(planned.log_dir, data)
    (tmp_path / "server.properties").write_text(f"{METADATA_CLASS}={OTHER}\n")

    applied = replace(planned, log_dir=data).apply()

    assert (applied.exit_code, applied.out) == (2, "")
    assert f"{METADATA_CLASS} is {OTHER}" in applied.err
    assert planned.objects() == before


def test_what_the_topic_says_is_still_shown(log_dir: Path, tieredctl: Tieredctl) -> None:
    assert tieredctl("metadata", "segments", "--log-dir", log_dir).exit_code == 0


@pytest.mark.parametrize("name", [TOPIC_BASED, ""])
def test_kafkas_own_manager_is_accepted(name: str) -> None:
    demand_topic_based([name])


def test_one_broker_of_another_manager_is_enough() -> None:
    with pytest.raises(TieredctlError, match=OTHER):
        demand_topic_based([TOPIC_BASED, OTHER])
