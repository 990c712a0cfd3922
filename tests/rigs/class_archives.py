"""Archives of the classes that a JVM loads, by Java's class data sharing: with one, a broker and Spark start with half
the work. Each is made once, of what a first one of them has loaded, and kept under `build/`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from .maven import java_command
from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

ARCHIVES = BUILD_FOLDER / "class-archives"
_SECONDS = 240
_OF_DRIVERS = "SPARK_SUBMIT_OPTS"
"""The variable of options that a driver's JVM gets beside all others."""


def archive_options(name: str, class_path: str, make: Callable[[Path], None]) -> list[str]:
    """Options with which a JVM of that class path uses an archive. Where there is none yet, `make` writes it.

    Without one, or with one that is not for its classes or its Java, a JVM loads them as ever.
    """
    said = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    folder = ARCHIVES / f"{name}-{hashlib.sha256((said + class_path).encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        build_folder(folder, lambda unfinished: make(unfinished / "classes.jsa"))
    return [f"-XX:SharedArchiveFile={folder / 'classes.jsa'}", "-Xlog:cds*=off"]


def share_spark_classes() -> None:
    """Lets all of Spark's drivers that this process and its children start from now on use an archive."""
    options = spark_archive_options()
    if options:
        os.environ[_OF_DRIVERS] = " ".join(options)


@cache
def spark_archive_options() -> list[str]:
    """Those of any JVM of Spark; none on a machine without Spark or Java."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        return []
    try:
        return archive_options(f"spark-{version('pyspark')}", spark.origin, _make_of_spark)
    except RigMissing:
        return []


def run_archiver(command: Sequence[str], **variables: str) -> None:
    """Runs what makes an archive. That it makes none, or not in time, costs speed alone."""
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command,
            cwd=BUILD_FOLDER.parent,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )


def _make_of_spark(archive: Path) -> None:
    command = [sys.executable, "-m", "tests.rigs.spark_classes", java_command("jcmd"), str(archive)]
    run_archiver(command, **{_OF_DRIVERS: "-XX:+RecordDynamicDumpInfo"})
