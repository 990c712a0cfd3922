"""docs/extending.md: a store, a layout, a source and a command of a package that is built from that page, and installed
beside tieredctl's own wheel in an environment where nothing else knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.documentation.pages import blocks
from tests.house.test_packaging import ROOT

PAGE = ROOT / "docs" / "extending.md"
PACKAGE = "tieredctl_acme"
SECONDS = 300
WRITE_METADATA = """
import sys
from pathlib import Path
from test_acme import WrittenDatabase
from tieredctl.testing.metadata_sources import EVENTS
WrittenDatabase(Path(sys.argv[1])).write(0, EVENTS)
"""
FEWER_EXAMPLES = """
from hypothesis import settings
settings.register_profile("fewer", max_examples=20)
settings.load_profile("fewer")
"""
"""tieredctl's own stores and layouts are tried with more."""
UNKNOWN_SEGMENT = "ABEiM0RVZneImaq7zN3u_w/t/0/00000000000000000042-AQIDBAUGBwgJCgsMDQ4PEA.log"


class Environment:
    """Python with the libraries of these tests, but of tieredctl's packages only what is installed from wheels."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=SECONDS)
        self.folder, self.python = folder, folder / "bin" / "python"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        for one in Path(sysconfig.get_path("purelib")).iterdir():
            if not one.name.startswith(("tieredctl", "_editable_impl_tieredctl", "__pycache__")):
                (self.packages / one.name).symlink_to(one)

    def install(self, wheel: Path) -> None:
        uv = shutil.which("uv", path=Path(sys.executable).parent) or "uv"
        words = [uv, "pip", "install", "--quiet", "--offline", "--no-index", "--no-deps", "--reinstall"]
        self._run([*words, "--python", self.python, wheel], self.folder).check_returncode()

    def run(self, *words: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run([self.python, *words], cwd, **variables)

    def tieredctl(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run([self.folder / "bin" / "tieredctl", *words], self.folder, **variables)

    def _run(self, words: list[str | Path], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        own = ("PYTHON", "TIEREDCTL_", "UV_", "VIRTUAL_ENV", "PYTEST_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        configured = {
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder),
            "UV_CACHE_DIR": f"{self.folder}/uv",
        }
        return subprocess.run(
            words,
            cwd=cwd,
            env=inherited | configured | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def built(sources: Path, into: Path) -> Path:
    """The wheel of the project in a folder."""
    build: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", into]
    subprocess.run(build, cwd=sources, check=True, capture_output=True, timeout=SECONDS)
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tieredctl-extending-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def project(folder: Path) -> Path:
    """The files that the page has."""
    sources = folder / "project"
    for _, _, text in blocks(PAGE):
        first, _, rest = text.partition("\n")
        if first.startswith("# "):
            file = sources / first.removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(rest, encoding="utf-8")
    return sources


@pytest.fixture(scope="module")
def environment(folder: Path, project: Path) -> Environment:
    """With tieredctl and the page's package, whose table of commands was written as the page says."""
    made = Environment(folder / "environment")
    made.install(built(ROOT, folder / "own"))
    made.install(built(project, folder / "first"))
    made.run("-m", "tieredctl.cli.command_rows", PACKAGE, cwd=folder).check_returncode()
    shutil.copy(made.packages / PACKAGE / "command_table.tsv", project / PACKAGE)
    made.install(built(project, folder / "second"))
    return made


@pytest.fixture(scope="module")
def box(folder: Path) -> Path:
    """A box with one object, of a segment that no metadata names."""
    stored = folder / "box" / UNKNOWN_SEGMENT
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"records")
    os.utime(stored, (1_000_000_000, 1_000_000_000))
    return folder / "box"


def test_each_passes_its_contract(environment: Environment, project: Path) -> None:
    (project / "conftest.py").write_text(FEWER_EXAMPLES)

    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=project)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_they_serve_tieredctls_own_commands(environment: Environment, project: Path, box: Path) -> None:
    metadata = environment.folder / "metadata.db"
    environment.run("-c", WRITE_METADATA, metadata, cwd=project, PYTHONPATH="tests").check_returncode()

    scanned = environment.tieredctl(
        *("orphans", "scan", "--store", f"box://{box}", "--layout", "acme"),
        *("--metadata-source", f"acme:{metadata}", "-o", "json"),
    )

    document = json.loads(scanned.stdout)
    assert document["source"]["store"] == f"box:{box}", scanned.stderr
    assert [(item["key"], item["part"]) for item in document["items"]] == [(UNKNOWN_SEGMENT, "log")]


def test_its_command_is_tieredctls(environment: Environment, box: Path) -> None:
    shown = environment.tieredctl("acme", "newest", "--store", f"box:{box}", "-o", "jsonl")
    completed = environment.tieredctl("acme", "n", _TIEREDCTL_COMPLETE="zsh")

    assert (shown.returncode, json.loads(shown.stdout)["key"]) == (0, UNKNOWN_SEGMENT)
    assert completed.stdout.splitlines()[1:] == ["newest\tShow the newest object of a store"]
    assert (environment.folder / "share" / "man" / "man1" / "tieredctl-acme-newest.1").is_file()


def test_its_scheme_is_known_wherever_a_store_is_named(environment: Environment, box: Path) -> None:
    completed = environment.tieredctl("verify", "--store", "b", _TIEREDCTL_COMPLETE="zsh")
    refused = environment.tieredctl("remote", "ls", "--store", "ftp://host")
    added = environment.tieredctl("context", "add", "boxes", "--store", "box:remote")
    inspected = environment.tieredctl("store", "inspect", f"box:{box}/{UNKNOWN_SEGMENT}")

    assert completed.stdout.splitlines()[1:] == ["box:\ta folder"]
    assert (refused.returncode, "box:DIR" in refused.stderr) == (2, True)
    assert added.returncode == 0
    assert f"box:{environment.folder}/remote" in (environment.folder / "tieredctl/contexts.d/boxes.yaml").read_text()
    assert "There is no" not in inspected.stderr
