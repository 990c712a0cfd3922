"""`snapshot fetch` from real controllers: the file is the controller's own, byte for byte."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.node_snapshots import asked_of_latest, name_of, snapshots_of
from tieredctl.cli.main import run
from tieredctl.errors import TieredctlError
from tieredctl.kafka.metadata_log import read_local_metadata_logs
from tieredctl.kafka.metadata_quorum import MetadataQuorum

CLEAN, FAILED, USAGE = 0, 1, 2
SECONDS = 60
CHUNK = 150
LAGS = {"quorum-voter-lags", "quorum-observer-lags", "metadata-log-untrimmed"}


def tieredctl(capfd: pytest.CaptureFixture[str], *words: str | Path) -> Outcome:
    capfd.readouterr()
    code = run(["snapshot", "fetch", *map(str, words)])
    return Outcome(code, *capfd.readouterr())


@pytest.mark.parametrize(("by", "chunk"), [("--bootstrap-controller", "1KiB"), ("--bootstrap-server", "8MiB")])
def test_the_file_is_the_controllers_own(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str], by: str, chunk: str
) -> None:
    broker = driven.broker
    address = broker.controller_address if by == "--bootstrap-controller" else broker.bootstrap_server
    words = ("--max-bytes", chunk, "--cluster-id", broker.cluster_id, "-o", "json")

    def fetched() -> tuple[Outcome, Path]:
        folder = Path(mkdtemp(dir=tmp_path))
        return tieredctl(capfd, by, address, "--to", folder, *words), folder

    (outcome, folder), latest = asked_of_latest(broker, fetched)

    assert outcome.exit_code == CLEAN, outcome
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {latest.name: latest.read_bytes()}
    assert outcome.document()["items"][0]["bytes"] == latest.stat().st_size


def test_an_older_one_is_there_by_its_name(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    older = snapshots_of(driven.broker)[0]
    place = ("--bootstrap-controller", driven.broker.controller_address, "--to", tmp_path / "copy")

    outcome = tieredctl(capfd, *place, "--snapshot", older.name)

    assert (outcome.exit_code, (tmp_path / "copy").read_bytes()) == (CLEAN, older.read_bytes()), outcome


def test_kafka_hides_its_reasons_and_they_are_found_all_the_same(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    controller = driven.broker.controller_address
    place = ("--bootstrap-controller", controller, "--to", tmp_path)
    missing, file = asked_of_latest(driven.broker, lambda: tieredctl(capfd, *place, "--snapshot", "999999999-1"))
    latest = name_of(file)
    other = ("--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ")
    another_cluster = tieredctl(capfd, "--bootstrap-controller", controller, "--to", tmp_path, *other)
    broker = tieredctl(capfd, "--bootstrap-controller", driven.broker.bootstrap_server, "--to", tmp_path)
    with closing(MetadataQuorum(controller)) as quorum, pytest.raises(TieredctlError) as beyond:
        quorum.chunk(latest, 1 << 30, CHUNK)

    assert (missing.exit_code, "Controller 1 has no snapshot 999999999-1" in missing.err) == (FAILED, True), missing
    assert f"Its latest is {latest.end_offset}-{latest.epoch}" in missing.err
    assert (another_cluster.exit_code, "belongs to another cluster" in another_cluster.err) == (USAGE, True)
    assert (broker.exit_code, "is not a controller's listener" in broker.err) == (USAGE, True)
    assert f"ends before byte {1 << 30}" in beyond.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_leader_shows_how_old_its_log_is(driven: DrivenBroker) -> None:
    (on_disk,) = read_local_metadata_logs([driven.broker.log_dir])

    with closing(MetadataQuorum(driven.broker.controller_address)) as quorum:
        by_its_answer = quorum.log_begins_ms()

    assert on_disk.first_record_ms is not None
    assert by_its_answer is not None
    assert 0 <= by_its_answer - on_disk.first_record_ms < 1000 * SECONDS


@pytest.mark.parametrize("by", ["--bootstrap-controller", "--log-dir"])
def test_doctor_tells_age_and_size_of_the_latest(
    driven: DrivenBroker, capfd: pytest.CaptureFixture[str], by: str
) -> None:
    broker = driven.broker
    place = broker.controller_address if by == "--bootstrap-controller" else str(broker.log_dir)

    def diagnosed() -> Any:
        run(["doctor", "--bootstrap-server", broker.bootstrap_server, by, place, "-o", "json"])
        return json.loads(capfd.readouterr().out)

    document, latest = asked_of_latest(broker, diagnosed)

    (finding,) = [item for item in document["items"] if item["code"] == "metadata-snapshot"]
    assert (finding["subject"], document["summary"]["voters"]) == ("node 1", 1)
    assert finding["evidence"]["endOffset"] == name_of(latest).end_offset
    assert finding["evidence"]["bytes"] == latest.stat().st_size
    assert 0 <= finding["evidence"]["ageMs"] < 1000 * SECONDS * SECONDS
    assert not {item["code"] for item in document["items"]} & LAGS
