"""Programs of the Go world, built once from their module's source and kept under `build/`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

DEFAULT_PROGRAM_CACHE = BUILD_FOLDER / "go"
REQUIRED_GO = (1, 19)
SWITCHES_BY_ITSELF = (1, 21)
"""From here on Go fetches by itself the release that a module asks for."""
FETCHED_RELEASE = "go1.26.8"
"""What an older Go is sent for: a release is a module like others."""
BUILD_TIMEOUT_SECONDS = 1_200


def go_program(package: str, version: str, cache_folder: Path = DEFAULT_PROGRAM_CACHE) -> Path:
    """The program of a Go package, such as `example.org/tool/cmd/tool`, at a version of its module.

    Raises RigMissing when Go is absent or too old, and when the program cannot be built.
    """
    name = package.rpartition("/")[2]
    folder = cache_folder / f"{name}-{version}"
    if not folder.is_dir():
        go = _go_command()
        build_folder(folder, lambda unfinished: _install(go, f"{package}@{version}", unfinished))
    return folder / name


def _install(go: str, package: str, folder: Path) -> None:
    environment = os.environ | {"GOBIN": str(folder), "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0"}
    # It may be another release's: each finds its own.
    environment.pop("GOROOT", None)
    completed = subprocess.run(
        [go, "install", package],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_SECONDS,
        check=False,
    )
    if completed.returncode != 0:
        raise RigMissing(f"Go could not build {package}: {_last_line(completed.stderr)}")


def _go_command() -> str:
    needed = f"Go {'.'.join(map(str, REQUIRED_GO))} or newer is needed"
    go = shutil.which("go")
    if go is None:
        raise RigMissing(f"{needed}, and there is no `go` on the PATH")
    announced = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", announced)
    if found is None or (release := (int(found.group(1)), int(found.group(2)))) < REQUIRED_GO:
        raise RigMissing(f"{needed}, and `go` here is {announced.strip() or 'something that tells no version'}")
    return go if release >= SWITCHES_BY_ITSELF else _fetched_go(go)


def _fetched_go(old_go: str) -> str:
    platform = subprocess.run([old_go, "env", "GOOS", "GOARCH"], capture_output=True, text=True, check=True).stdout
    release = f"golang.org/toolchain@v0.0.1-{FETCHED_RELEASE}.{'-'.join(platform.split())}"
    completed = subprocess.run(
        [old_go, "mod", "download", "-json", release],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_SECONDS,
        check=False,
    )
    if completed.returncode != 0:
        raise RigMissing(f"Go could not fetch {FETCHED_RELEASE}: {_last_line(completed.stdout + completed.stderr)}")
    folder = Path(json.loads(completed.stdout)["Dir"])
    # A module holds no programs, only files.
    for program in (*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")):
        program.chmod(0o755)
    return str(folder / "bin/go")


def _last_line(said: str) -> str:
    return next(iter(reversed(said.strip().splitlines())), "it does not say why")
