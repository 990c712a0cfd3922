"""Iceberg's and Delta's runtimes for Spark out of Maven Central, as they were when they were tried, in `build/`."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

RELEASE = "4.1"
"""The release of Spark that both have a runtime for."""
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
_SHA256 = {
    ICEBERG: "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
    "io.delta:delta-spark_4.1_2.13:4.3.1": "ebf35a4383f0a653c3ee3c7882c0edcac2f846be31ac61af4b96ccfaaf36c171",
    "io.delta:delta-storage:4.3.1": "577c12c7e371be4c041714fb48e88ad86e3c3512beea2bdaffbe7a4debf79718",
}
_SECONDS = 300


def catalog_jars() -> list[Path]:
    """The jars of both. Raises RigMissing without Maven, and for another file than it was."""
    return [jar_of(artifact) for artifact in _SHA256]


def jar_of(artifact: str) -> Path:
    """One of them. Raises RigMissing."""
    _, name, version = artifact.split(":")
    folder = BUILD_FOLDER / "catalog-jars" / name
    if not folder.is_dir():
        build_folder(folder, lambda unfinished: _copy(artifact, unfinished))
    jar = folder / f"{name}-{version}.jar"
    if hashlib.sha256(jar.read_bytes()).hexdigest() != _SHA256[artifact]:
        raise RigMissing(f"{jar} is another file than it was")
    return jar


def _copy(artifact: str, folder: Path) -> None:
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except FileNotFoundError:
        raise RigMissing("there is no `mvn` on the PATH") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise RigMissing(f"Maven cannot copy {artifact}: {error}") from None
