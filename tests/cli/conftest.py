"""The command line as a fixture, and folders for what it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import AGED, CAPTURE, ENOUGH, CrashedClusterOnDisk, crashed_cluster_on_disk
from tests.cli.metadata_command import Metadata
from tests.cli.metadata_command import Outcome as MetadataOutcome
from tests.cli.offered_words import Offered
from tests.metadata_logs import DELETED, DELETING, copied, started, updated, write_events
from tests.rigs.memory import IN_MEMORY
from tieredctl.cli.completion.completing import VARIABLE, answer_shell
from tieredctl.cli.main import run
from tieredctl.process import redaction


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of the test's own, gone after it."""
    with TemporaryDirectory(prefix="tieredctl-test-", dir=IN_MEMORY) as name:
        yield Path(name)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crash files and known secrets are the test's own."""
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without a cache or a configuration."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str], cache: Mapping[str, str]) -> Offered:
    """Answers a shell that completes these words."""

    def offered(*words: str, **variables: str) -> list[str]:
        answer_shell(words, {VARIABLE: "zsh", **cache, **variables})
        out, err = capsys.readouterr()
        assert err == ""
        action, *candidates = out.splitlines()
        return [action.rstrip("\t"), *(line.partition("\t")[0] for line in candidates)]

    return offered


@pytest.fixture
def cluster(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> CrashedClusterOnDisk:
    """A crashed cluster whose store may be changed."""
    return crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)


@pytest.fixture
def planned(cluster: CrashedClusterOnDisk) -> CrashedClusterOnDisk:
    """The same, with a plan that has not been used."""
    assert cluster.plan(*AGED, *ENOUGH).exit_code == 0
    return cluster


@pytest.fixture
def metadata(capfdbinary: pytest.CaptureFixture[bytes]) -> Metadata:
    """Runs `tieredctl metadata` with these words."""

    def metadata(*words: str | Path) -> MetadataOutcome:
        code = run(["metadata", *map(str, words)])
        out, err = capfdbinary.readouterr()
        return MetadataOutcome(code, out.decode(), err.decode())

    return metadata


@pytest.fixture
def quarantined(planned: CrashedClusterOnDisk) -> CrashedClusterOnDisk:
    """The same, with its orphans in quarantine."""
    assert planned.apply().exit_code == 0
    return planned


@pytest.fixture
def capture(captures: Path) -> Path:
    """What a sound cluster left."""
    return captures / "kafka-4.3.1"


@pytest.fixture
def data(capture: Path) -> Path:
    """The log directory of its broker."""
    return capture / "data"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with three segments, one of them deleted."""
    write_events(
        tmp_path,
        *copied(1, 0, 9),
        *copied(2, 10, 19, {0: 10, 1: 15}),
        updated(1, DELETING),
        updated(1, DELETED),
        started(3, 20, 29, {1: 20}),
    )
    return tmp_path
