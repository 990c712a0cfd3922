"""Objects that cannot be read, as the command line tells of them: never a traceback, and never a clean result."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.command_line import Outcome
from tieredctl.cli.main import run


@pytest.fixture
def capture(captures: Path, tmp_path: Path) -> Path:
    """A copy whose remote files may be replaced, but not written to: they are links."""
    (tmp_path / "data").symlink_to(captures / "kafka-4.3.1" / "data")
    shutil.copytree(captures / "kafka-4.3.1" / "remote", tmp_path / "remote", copy_function=os.link)
    return tmp_path


@pytest.fixture
def log(capture: Path) -> Path:
    """The largest log in the store."""
    logs = (capture / "remote" / "kafka-tiered-storage").rglob("*.log")
    return max(logs, key=lambda path: path.stat().st_size)


@pytest.fixture
def forbidding(captures: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy whose files' permissions may be changed, where every user may look for it and keep files besides."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        everybodys = Path(folder, "tmp")
        everybodys.mkdir()
        everybodys.chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", str(everybodys))
        yield Path(shutil.copytree(captures / "kafka-4.3.1", Path(folder) / "cluster"))


def largest(capture: Path, suffix: str) -> Path:
    """The file of that kind in the store that comes last of the largest."""
    files = (capture / "remote" / "kafka-tiered-storage").rglob(f"*.{suffix}")
    return max(files, key=lambda path: (path.stat().st_size, path.name))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read whatever it likes; nobody may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def verified_by_nobody(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Outcome:
    assert verified(capture, capsys, *words).exit_code in (0, 5)  # nothing is left that only root may import
    with as_nobody():
        return verified(capture, capsys, *words)


def verified(capture: Path, capsys: pytest.CaptureFixture[str], *words: str | Path) -> Outcome:
    """By the store of the capture, unless another is given."""
    store = () if "--store" in words else ("--store", f"file:{capture / 'remote' / 'kafka-tiered-storage'}")
    words = ("verify", "--log-dir", capture / "data", *store, "-o", "json", *words)
    exit_code = run([str(word) for word in words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return Outcome(exit_code, said.out, said.err)


IN_PLACE_OF_A_LOG: dict[str, Callable[[Path], object]] = {
    "a folder": lambda log: log.mkdir(),
    "a link to nowhere": lambda log: log.symlink_to("nowhere"),
    "a link to its folder": lambda log: log.symlink_to("."),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("name", IN_PLACE_OF_A_LOG)
def test_what_is_no_file_in_place_of_a_log_is_a_missing_log(
    capture: Path, log: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log.unlink()
    IN_PLACE_OF_A_LOG[name](log)

    for level in ("listing", "headers", "full"):
        finding = verified(capture, capsys, "--level", level).finding(exit_code=4)
        assert (finding["code"], finding["evidence"]["part"]) == ("object-missing", "log"), level


@pytest.mark.parametrize(
    ("level", "part"),
    [
        ("headers", "log"),
        ("headers", "timeindex"),
        ("full", "log"),
        ("full", "timeindex"),
        ("full", "leader_epoch_checkpoint"),
    ],
)
def test_a_file_without_permission_is_unreadable_and_the_rest_is_verified(
    forbidding: Path, level: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = largest(forbidding, part)
    file.chmod(0)

    outcome = verified_by_nobody(forbidding, capsys, "--level", level)

    finding = outcome.finding(exit_code=5)
    assert finding["code"] == "unreadable"
    assert finding["evidence"]["key"].endswith(file.name)
    summary = outcome.document()["summary"]
    assert (summary["segments"], summary["objects"], summary["complete"]) == (172, 879, False)


def test_a_folder_without_permission_is_unreadable_and_the_rest_is_verified(
    forbidding: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    largest(forbidding, "log").parent.chmod(0)

    outcome = verified_by_nobody(forbidding, capsys, "--level", "full")

    assert outcome.exit_code == 5
    assert {finding["code"] for finding in outcome.document()["items"]} == {"unreadable"}
    assert outcome.document()["summary"]["segments"] == 172


def test_what_is_no_store_is_wrong_use(capture: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (capture / "nowhere", log):
        outcome = verified(capture, capsys, "--store", f"file:{path}")

        assert (outcome.exit_code, outcome.out) == (2, ""), path
        assert str(path) in outcome.err


def test_an_empty_store_is_another_one_or_was_emptied(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()

    outcome = verified(capture, capsys, "--store", f"file:{tmp_path / 'empty'}", "--layout", "local")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "is empty, but the metadata promises segments" in outcome.err
    assert "everything in it was deleted" in outcome.err


def test_a_store_that_lost_all_but_one_object_lost_the_others(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote = capture / "remote/kafka-tiered-storage"
    left = next(path for path in sorted(remote.rglob("*.log")) if path.parent.name.startswith("payments7"))
    kept = tmp_path / "kept" / left.relative_to(remote)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(left.read_bytes())

    outcome = verified(capture, capsys, "--store", f"file:{tmp_path / 'kept'}", "--layout", "local")

    assert outcome.exit_code == 4
    assert {finding["code"] for finding in outcome.document()["items"]} >= {"object-missing"}


def test_another_layout_or_another_clusters_store_is_not_data_loss(
    capture: Path, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = (f"file:{folder / 'remote/kafka-tiered-storage'}" for folder in (capture, captures / "kafka-3.9.1"))
    for store, words, said in (
        (own, ("--layout", "aiven"), "No object in"),
        (own, ("--layout", "aiven", "--topic", "slow7"), "No object in"),
        (other, ("--layout", "local"), "has no objects of the topics in the metadata"),
    ):
        outcome = verified(capture, capsys, "--store", store, *words)

        assert (outcome.exit_code, outcome.out) == (2, ""), words
        assert said in outcome.err, words


def test_a_topic_that_lost_all_of_its_objects_lost_them(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(capture / "remote/kafka-tiered-storage", kept, ignore=shutil.ignore_patterns("slow7-*"))

    outcome = verified(capture, capsys, "--store", f"file:{kept}", "--layout", "local", "--topic", "slow7")

    assert outcome.exit_code == 4
    assert {finding["code"] for finding in outcome.document()["items"]} == {"object-missing"}


def test_a_partition_that_a_known_topic_does_not_have(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"file:{capture / 'remote/kafka-tiered-storage'}"

    outcome = verified(capture, capsys, "--store", store, "--topic", "slow7", "--partition", "9")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "knows topic slow7, partition 9; of that topic there is partition 0." in outcome.err
