"""PySpark's earlier releases, each as its lock has it: installed once, in a minute, and kept under `build/`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

RELEASES = ("4.0", "4.1", "4.2")
"""Those besides the one that all tests run with."""
_SECONDS = 540


def lock_of(release: str) -> Path:
    """The versions and hashes of a release."""
    return BUILD_FOLDER.parent / f"requirements-spark-{release}.lock"


def installed_spark(release: str) -> Path:
    """The folder that has `pyspark` of a release; installs it unless it is there. Raises RigMissing."""
    lock = lock_of(release)
    folder = BUILD_FOLDER / f"pyspark-{release}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        build_folder(folder, partial(_install, lock))
    return folder


def _install(lock: Path, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    # setuptools, which builds PySpark, is of the locks.
    how = ["--require-hashes", "--no-deps", "--no-build-isolation", "--no-compile", "--target", str(folder)]
    command = [*pip, "install", *how, "-r", str(lock)]
    environment = os.environ | {"TMPDIR": str(folder.parent)}  # half a gigabyte, where there is room for the result
    try:
        subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RigMissing(f"{lock.name} was not installed within {_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        raise RigMissing(f"{lock.name} cannot be installed: {error.stderr.strip()}") from None
