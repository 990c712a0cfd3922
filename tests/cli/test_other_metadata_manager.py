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


def test_it_is_refused_by_its_name(
    log_dir: Path, captures: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the topic has is still shown."""
    monkeypatch.chdir(log_dir.parent)
    store = f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}"
    for words in (
        ("verify",),
        ("orphans", "scan"),
        ("orphans", "plan", "--to", "plan"),
        ("orphans", "purge", "--offline-metadata", "--older-than", "24h", "--layout", "local"),
        ("recover", "metadata"),
        ("recover", "indexes", "zYJ8cWbWS6Wrn_UH97CRKw"),
    ):
        outcome = tieredctl(*words, "--log-dir", log_dir, "--store", store)

        assert (outcome.exit_code, outcome.out, OTHER in outcome.err) == (2, "", True), words
    assert tieredctl("metadata", "segments", "--log-dir", log_dir).exit_code == 0


def test_a_plan_is_not_applied(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    before = planned.objects()
    data = tmp_path / "data"
    shutil.copytree(planned.log_dir, data)
    (tmp_path / "server.properties").write_text(f"{METADATA_CLASS}={OTHER}\n")

    applied = replace(planned, log_dir=data).apply()

    assert (applied.exit_code, applied.out) == (2, "")
    assert planned.objects() == before


def test_one_broker_of_another_manager_is_enough_and_kafkas_own_is_accepted() -> None:
    for name in (TOPIC_BASED, ""):
        demand_topic_based([name])
    with pytest.raises(TieredctlError, match=OTHER):
        demand_topic_based([TOPIC_BASED, OTHER])
