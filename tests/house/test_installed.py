"""What people install: a folder, the same whoever makes it, and tieredctl as uv and pip install it from there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from packaging.requirements import Requirement

from tests.house.test_packaging import PROJECT_FILES, ROOT, project
from tests.rigs.repacked_wheels import locked_names, repacked
from tieredctl import __version__
from tieredctl.cli.completion.command_table import CommandTable
from tieredctl.cli.man_pages import man_pages
from tieredctl.installation import missing_extra

BASE = ROOT / "requirements-runtime.lock"
CONTAINERFILE = ROOT / "Containerfile"
OF_AIVEN = {"cffi", "cryptography", "pycparser", "pycryptodome"}
"""What only a plugin needs."""
LARGEST_MB = 260
"""What docs/installing.md says, and a little more: NumPy and Arrow are nearly all of it."""
SECONDS = 120
_EXTRA = re.compile(
    r"""tieredctl\[([a-z0-9,]+)\]|(?:missing_extra\(.*, |installation_of\(|extra=)["']([a-z0-9]+)["']"""
)
_BUILD = """
import os, sys
from hatchling.build import build_sdist, build_wheel
into = sys.argv[1]
for folder in sys.argv[2:]:
    os.chdir(folder)
    build_sdist(into)
    build_wheel(into)
"""


def built(sources: Path, into: Path, **variables: str) -> dict[str, str]:
    """Builds all packages; each file that they are given out as, and its hash."""
    into.mkdir()
    folders = [str(sources / file.parent.relative_to(ROOT)) for file in PROJECT_FILES]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    subprocess.run([sys.executable, "-c", _BUILD, str(into), *folders], env=environment, check=True, timeout=SECONDS)
    return hashes(into)


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file, by its name."""
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def copied_sources(to: Path) -> Path:
    """The sources as somebody else has them: elsewhere, written at another time, by a user with another umask."""
    names = shutil.ignore_patterns("__pycache__", "dist", "build")
    for file in PROJECT_FILES:
        package = file.parent.relative_to(ROOT)
        if package != Path():
            shutil.copytree(ROOT / package, to / package, ignore=names)
    shutil.copytree(ROOT / "tieredctl", to / "tieredctl", symlinks=True, ignore=names)
    (to / "docs").mkdir()
    for name in (
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        ".gitignore",
        "docs/findings.md",
    ):
        shutil.copyfile(ROOT / name, to / name)
    for path in to.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    return to


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tieredctl-installed-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def given_out(folder: Path) -> dict[str, str]:
    """A release, made in the folder `given-out`: the files of its list and their SHA-256."""
    made = ["make", "--no-print-directory", "--silent", f"RELEASE={folder / 'given-out'}", "release"]
    subprocess.run(made, cwd=ROOT, check=True, timeout=SECONDS, capture_output=True)
    listed = (folder / "given-out" / "SHA256SUMS").read_text(encoding="ascii")
    return {name: digest for digest, name in (line.split("  ") for line in listed.splitlines())}


@pytest.fixture(scope="module")
def shelf(folder: Path) -> Path:
    """What an index has: the base packages, and none of ours."""
    shelf = folder / "shelf"
    shelf.mkdir()
    for name in locked_names(BASE):
        if name not in OF_AIVEN:
            repacked(name, shelf)
    return shelf


@pytest.fixture(scope="module")
def tool(folder: Path, given_out: dict[str, str], shelf: Path) -> Path:
    """tieredctl and the layout of brokers' own store, installed for one user with nothing but the base packages."""
    assert given_out
    variables = {
        "UV_TOOL_DIR": str(folder / "tools"),
        "UV_TOOL_BIN_DIR": str(folder / "programs"),
        "UV_CACHE_DIR": str(folder / "cache"),
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV"))}
    subprocess.run(
        [
            *(shutil.which("uv", path=Path(sys.executable).parent) or "uv", "tool", "install", "tieredctl"),
            *("--with", "tieredctl-local", "--python", sys.executable, "--no-config"),
            *("--no-index", "--offline", "--find-links", str(shelf), "--find-links", str(folder / "given-out")),
        ],
        env=environment | variables,
        check=True,
        timeout=SECONDS,
        capture_output=True,
    )
    return folder / "programs" / "tieredctl"


def run(tool: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs what is installed, which sees nothing of this folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TIEREDCTL_"))}
    return subprocess.run(
        [tool, *words],
        cwd=tool.parent,
        env=environment | {"HOME": str(tool.parent)} | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.exhaustive
def test_everybody_builds_the_same_bytes(given_out: dict[str, str], tmp_path: Path) -> None:
    sources = copied_sources(tmp_path / "elsewhere")

    again = built(sources, tmp_path / "again", TZ="Pacific/Auckland", LC_ALL="C", PYTHONHASHSEED="7")

    assert len(again) == 2 * len(PROJECT_FILES)
    assert again.items() <= given_out.items()


def test_a_release_lists_all_of_its_files_and_each_hash_is_true(folder: Path, given_out: dict[str, str]) -> None:
    present = hashes(folder / "given-out")

    assert present.pop("SHA256SUMS")
    assert given_out == present
    assert [name for name in present if not name.endswith((".whl", ".tar.gz"))] == ["tieredctl.cdx.json"]
    assert {project(file)["project"].get("version", __version__) for file in PROJECT_FILES} == {__version__}


def test_a_wheel_of_the_source_distribution_is_the_same_too(
    folder: Path, given_out: dict[str, str], tmp_path: Path
) -> None:
    (sdist,) = (folder / "given-out").glob("tieredctl-0*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()

    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=unpacked, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    assert sha256(wheel.read_bytes()).hexdigest() == given_out[wheel.name]


def test_a_wheel_has_the_pages_of_all_commands_and_no_tests(folder: Path, given_out: dict[str, str]) -> None:
    (name,) = (name for name in given_out if name.startswith("tieredctl-0") and name.endswith(".whl"))
    with zipfile.ZipFile(folder / "given-out" / name) as wheel:
        names = wheel.namelist()
        findings = wheel.read("tieredctl/findings.md")

    pages = {one.rpartition("/")[2] for one in names if "/share/man/man1/" in one}
    assert pages == set(man_pages(CommandTable.installed()))
    assert findings == (ROOT / "docs" / "findings.md").read_bytes()
    assert not [one for one in names if one.startswith(("tests", "docs", "."))]


def test_a_second_command_verifies_a_capture_without_any_extra(tool: Path) -> None:
    shown = run(tool, "demo")

    assert (shown.returncode, "Traceback" in shown.stdout + shown.stderr) == (0, False)
    assert "all intact" in shown.stdout
    assert "pip install tieredctl-spark" in shown.stdout + shown.stderr  # what it leaves out, it names


@pytest.mark.exhaustive
def test_pip_installs_from_the_same_folder(
    folder: Path, given_out: dict[str, str], shelf: Path, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=SECONDS)
    pip = [sys.executable, "-m", "pip", "--quiet", "--isolated", "--python", str(tmp_path / "venv/bin/python")]
    places = ["--no-index", "--find-links", str(folder / "given-out"), "--find-links", str(shelf)]
    packages = [f"tieredctl=={__version__}", f"tieredctl-local=={__version__}"]

    subprocess.run([*pip, "install", "--no-compile", *places, *packages], check=True, timeout=SECONDS)

    assert given_out
    assert run(tmp_path / "venv/bin/tieredctl", "demo").returncode == 0


def test_what_uv_installs_completes_and_has_its_manual(tool: Path) -> None:
    environment = tool.resolve().parents[1]

    assert run(tool, "metadata", "se", _TIEREDCTL_COMPLETE="zsh").stdout.splitlines()[1].startswith("segments\t")
    assert (environment / "share" / "man" / "man1" / "tieredctl-metadata-segments.1").exists()


def test_a_command_that_needs_more_says_how_to_install_it(tool: Path) -> None:
    needed: dict[tuple[str, ...], tuple[int, str]] = {
        ("metadata", "segments", "--bootstrap-server", "localhost:1"): (1, "'tieredctl[kafka]'"),
        ("remote", "ls", "--store", "s3://bucket"): (1, "'tieredctl[s3]'"),
        ("remote", "ls", "--store", "gs://bucket"): (1, "'tieredctl[gs]'"),
        ("remote", "ls", "--store", "az://container"): (1, "'tieredctl[azure]'"),
        ("remote", "records", "a", "--value", "avro", "--schema-registry", "http://a"): (1, "'tieredctl[avro]'"),
        ("verify", "--log-dir", ".", "--store", "file:.", "--layout", "local", "--report", "a.html"): (
            1,
            "'tieredctl[report]'",
        ),
        ("remote", "ls", "--store", "hdfs://namenode/base"): (2, "tieredctl --with tieredctl-hdfs"),
        ("diskless", "status"): (2, "tieredctl --with tieredctl-inkless"),
        ("wal", "inspect"): (2, "tieredctl --with tieredctl-proposals"),
    }
    for words, (code, what) in needed.items():
        refused = run(tool, *words)

        assert refused.returncode == code, words
        assert f"uv tool install {what}" in refused.stderr, words


def test_every_extra_that_a_message_or_a_page_names_is_declared() -> None:
    extras = project(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    sources = [file for pattern in ("tieredctl", "spark", "plugins") for file in (ROOT / pattern).rglob("*.py")]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/*.md"), *ROOT.glob("spark/*.md")]

    found = [pair for file in sources + pages for pair in _EXTRA.findall(file.read_text(encoding="utf-8"))]

    assert {extra for _, extra in found if extra} == {"avro", "azure", "kafka", "s3", "gs", "diskless", "report"}
    assert {extra for listed, _ in found for extra in listed.split(",") if extra} <= set(extras)
    assert Requirement(extras["all"][0]).extras == set(extras) - {"all", "testing"}


@pytest.mark.parametrize(
    ("left_by_installer", "command"),
    [
        ("pyvenv.cfg", "pip install 'tieredctl[s3]'"),
        ("pipx_metadata.json", "pipx runpip tieredctl install 'tieredctl[s3]'"),
        ("uv-receipt.toml", "uv tool install 'tieredctl[s3]', and the same --with as before"),
    ],
)
def test_an_extra_is_installed_with_what_installed_tieredctl(
    left_by_installer: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / left_by_installer).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert missing_extra("It needs boto3.", "s3").hint == f"Install it with {command}."


def test_a_base_installation_is_as_large_as_its_page_says(tool: Path) -> None:
    environment = tool.resolve().parents[1]
    sizes = {file: file.stat().st_size for file in environment.rglob("*") if file.is_file() and file.suffix != ".pyc"}

    assert sum(sizes.values()) < LARGEST_MB * 1_000_000


@pytest.mark.exhaustive
def test_the_bill_of_materials_names_what_the_lock_installs(tmp_path: Path) -> None:
    bill, lock = tmp_path / "bill.json", "requirements-archive.lock"
    command = ["make", "--no-print-directory", "--silent", f"SBOM={bill}", f"SBOM_LOCK={lock}", "sbom"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=SECONDS)

    text = bill.read_text(encoding="utf-8")
    listed = {one["name"]: one["version"] for one in json.loads(text)["components"]}
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", (ROOT / lock).read_text(), flags=re.MULTILINE))
    assert listed == locked
    assert json.loads(text)["metadata"]["component"]["name"] == "tieredctl"
    assert str(ROOT) not in text
    assert "file:" not in text


def test_the_container_is_one_that_a_linter_and_a_cluster_take() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    linter = Path(sys.executable).with_name("hadolint")

    subprocess.run([linter, CONTAINERFILE], check=True, timeout=SECONDS)

    images = re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE)
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", image) for image in images)
    assert re.search(r"^USER \d+:\d+$", text, flags=re.MULTILINE)
    assert text.index("\nUSER ") < text.index("\nENTRYPOINT ")


@pytest.mark.parametrize("recipe", ["Containerfile", "examples/spark.Dockerfile"])
def test_what_an_image_is_made_of_is_there_and_sent_to_the_builder(recipe: str) -> None:
    text = (ROOT / recipe).read_text(encoding="utf-8")
    copied = re.findall(r"^(?:COPY|ADD) (?!--from)(.*) \S+$", text, flags=re.MULTILINE)
    sources = [name for one in copied for name in one.split()]
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert sources
    assert all((ROOT / name).exists() or name.startswith("dist/") for name in sources)
    assert {f"!{name}" for name in sources} <= set(sent)
