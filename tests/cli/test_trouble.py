"""What a user has in hand when something goes wrong: the requests as they are made, and a file for the report."""

from __future__ import annotations

import logging
import os
import re
import resource
import signal
import stat
from pathlib import Path

import pytest
from kafka.protocol.consumer import FetchResponse

from tests.cli.command_line import Outcome, Tieredctl, own_process
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tieredctl.cli.trouble.trace import shown_trace
from tieredctl.kafka.fetch_snapshot import FetchSnapshotResponse
from tieredctl.process import crash_file
from tieredctl.process.crash_file import crash_text
from tieredctl.storage.file import FileStore

SECRET = "correct-horse-battery"


class FaultFound(Exception):
    """What nobody foresaw."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/tieredctl/crashes"


@pytest.fixture
def faulty(captures: Path, state: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """A run that met an unexpected error, with a secret in its message, its environment and its command line."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    def list_nothing(*_: object) -> None:
        unseen = f"{SECRET}-in-a-variable"
        raise FaultFound(f"no {SECRET}, and {len(unseen)}")

    monkeypatch.setattr(FileStore, "list", list_nothing)
    return tieredctl("remote", "ls", "--store", f"file:{captures}/kafka-4.3.1/remote", "--topic", f"token={SECRET}")


def test_an_unexpected_error_says_where_its_file_is_which_has_what_a_report_needs(faulty: Outcome, state: Path) -> None:
    """For its owner alone, and without the secret."""
    (written,) = state.iterdir()
    text = written.read_text()
    assert (faulty.exit_code, faulty.out) == (1, "")
    assert "has a fault at" in faulty.err
    assert f"  Please report it with {written}, which has no secrets.\n" in faulty.err
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "command   tieredctl remote ls --store file:" in text
    assert "in list_nothing" in text
    assert "  AWS_SECRET_ACCESS_KEY\n" in text
    assert re.search(r"^package   pyarrow \d", text, re.MULTILINE)
    assert "FaultFound: no (hidden)" in text
    assert SECRET not in text + faulty.err


def test_only_the_newest_files_are_kept(state: Path) -> None:
    written = [crash_file.write_crash_file(FaultFound(str(number)), ["tieredctl", "status"]) for number in range(25)]
    assert len(list(state.iterdir())) == 20
    assert all(path is not None and path.exists() for path in written[-1:])


def test_another_folder_is_taken_where_the_usual_one_cannot_be_and_without_any_the_error_is_still_said(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/no")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    written = crash_file.write_crash_file(FaultFound(), ["tieredctl", "status"])
    assert written is not None
    assert written.parent == tmp_path
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/proc/no")
    monkeypatch.setattr(FileStore, "list", lambda *_: 1 / 0)
    outcome = tieredctl("remote", "ls", "--store", f"file:{captures}/kafka-4.3.1/remote")
    assert (outcome.exit_code, "division by zero" in outcome.err) == (1, True)


def test_on_a_full_disk_the_error_is_still_said_and_no_cut_file_is_left(
    captures: Path, state: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(FileStore, "list", lambda *_: 1 / 0)
    asked = ("remote", "ls", "--store", f"file:{captures}/kafka-4.3.1/remote")

    sizes, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, sizes[1]))
    try:
        outcome = tieredctl(*asked)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
        signal.signal(signal.SIGXFSZ, handler)

    assert outcome.exit_code == 1
    assert "division by zero" in outcome.err
    assert list(state.iterdir()) == []


def test_requests_to_a_store_are_shown_anywhere_in_the_line(captures: Path, tieredctl: Tieredctl) -> None:
    store = f"file:{captures}/kafka-4.3.1/remote"
    words = ["remote", "ls", "--store", store]
    plain = tieredctl(*words)
    assert " ms" not in plain.err
    for option in ("-v", "--verbose", "--debug"):
        for line in ([option, *words], [*words, option]):
            outcome = tieredctl(*line)

            assert (outcome.exit_code, outcome.out) == (plain.exit_code, plain.out), line
            shown = rf"^ +\d+\.\d{{3}} s  storage  {store}: list all: \d+ objects, \d+\.\d ms$"
            assert re.search(shown, outcome.err, re.MULTILINE), line
            assert re.search(rf"^{store} was asked \d+ times, and took \d+\.\d ms\.$", outcome.err, re.MULTILINE)
            assert not logging.getLogger("tieredctl").handlers, line


def test_debug_shows_where_an_error_arose(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("--debug", "metadata", "segments", "--log-dir", "/no")
    assert outcome.exit_code == 2
    assert "Traceback" in outcome.err
    assert "tieredctl: There is no /no." in outcome.err


def test_debug_shows_no_records_of_kafka_pythons_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for records in (b"hunter22", b"it's \x00 hunter22", b"x" * 5_000):
        partition = FetchResponse.FetchableTopicResponse.PartitionData(partition_index=0, records=records)
        topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
        response = FetchResponse(version=11, responses=[topic])
        with shown_trace(is_debugged=True):
            logging.getLogger("kafka.net.connection").debug("Response: %s", response)

        shown = capsys.readouterr().err
        assert all(one in shown for one in ("topic='orders'", "records=…")), records[:9]
        assert not any(one in shown for one in ("hunter22", "xxx")), records[:9]


def test_debug_shows_nothing_of_a_snapshot_that_a_controller_sends(capsys: pytest.CaptureFixture[str]) -> None:
    for data in (b"hunter22", b"it's \x00 hunter22", b"x" * 5_000):
        topics = FetchSnapshotResponse.TopicSnapshot
        snapshot = topics.PartitionSnapshot.SnapshotId(end_offset=7, epoch=1)
        partition = topics.PartitionSnapshot(index=0, snapshot_id=snapshot, unaligned_records=data)
        topic = topics(name="__cluster_metadata", partitions=[partition])
        response = FetchSnapshotResponse(version=0, topics=[topic])
        with shown_trace(is_debugged=True):
            logging.getLogger("kafka.net.connection").debug("Response: %s", response)

        shown = capsys.readouterr().err
        assert all(one in shown for one in ("'__cluster_metadata'", "unaligned_records=…")), shown
        assert not any(one in shown for one in ("hunter22", "xxx")), data[:9]


def test_a_secret_that_a_long_message_is_cut_in_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for before in range(3_950, 4_000, 7):
        assert SECRET[:8] not in crash_text(ValueError(f"{'x' * before}{SECRET}"), [])


def test_no_secret_of_the_environment_is_shown(captures: Path) -> None:
    store = f"file:{captures}/kafka-4.3.1/remote"
    outcome = own_process("--debug", "remote", "ls", "--store", store, "--topic", SECRET, KAFKA_PASSWORD=SECRET)
    assert SECRET not in outcome.err


def test_neither_keys_nor_signatures_of_a_store_are_shown(versitygw: ObjectServer, tieredctl: Tieredctl) -> None:
    bucket = S3Bucket(versitygw.endpoint)
    bucket.put("traced/key", b"data")
    url = f"s3://{BUCKET}/traced"
    options = [f"{name}={value}" for name, value in bucket.options.items()]

    words = ("remote", "ls", "--store", url, *(word for one in options for word in ("--store-option", one)))
    outcome = tieredctl("--debug", *words, "--layout", "local")

    assert "urllib3.connectionpool" in outcome.err
    assert f"storage  {url}: list all: " in outcome.err
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in outcome.err
    assert "Signature" not in outcome.err


def test_a_password_of_a_control_plane_is_not_repeated(tieredctl: Tieredctl) -> None:
    uri = f"postgresql://role:{SECRET}@127.0.0.1:1/inkless"
    outcome = tieredctl("--debug", "diskless", "status", "--control-plane", uri, "--store", "memory:")
    assert outcome.exit_code == 2
    assert SECRET not in outcome.err
