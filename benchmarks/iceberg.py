"""Iceberg's `remove_orphan_files` on the same store: its jar, the PySpark it needs, and a table of live objects."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.large_store import LargeStore
from benchmarks.spark_iceberg import BUCKET
from tests.rigs.catalog_jars import ICEBERG, jar_of
from tests.rigs.maven import compile_java, java_command
from tests.rigs.prerequisites import BUILD_FOLDER, build_folder

FOLDER = BUILD_FOLDER / "iceberg"
PYSPARK = "pyspark==4.1.4"
"""The newest that a release of Iceberg has a runtime for."""
_HERE = Path(__file__).parent
_SEGMENT_ID = r"/\d{20}-(?P<id>[^.]{22})"


@dataclass(frozen=True)
class Iceberg:
    """What its search runs with."""

    python: Path
    jar: Path
    warehouse: Path

    def command(self, store: LargeStore) -> Sequence[str]:
        """The search for a store's orphans."""
        files = str(store.parquet_manifest.parent / "*.parquet")
        script = str(_HERE / "spark_iceberg.py")
        return [str(self.python), script, str(self.jar), str(self.warehouse), files, str(store.orphans)]


def iceberg_with(store: LargeStore, folder: Path) -> Iceberg:
    """With a table of a store's live objects in a folder. Raises RigMissing without Maven or a JDK."""
    if not FOLDER.is_dir():
        build_folder(FOLDER, _install)
    jar, python = jar_of(ICEBERG), FOLDER / "python" / "bin" / "python"
    (jars,) = FOLDER.glob("python/lib/python*/site-packages/pyspark/jars")
    class_path = f"{jar}{os.pathsep}{jars}/*"
    classes = compile_java([_HERE / "java" / "IcebergTable.java"], class_path)
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        paths = Path(unfinished, "paths")
        _write_live_paths(store, paths)
        words = [java_command(), "-Xmx3G", "-cp", f"{classes}{os.pathsep}{class_path}", "IcebergTable"]
        subprocess.run([*words, str(folder / "warehouse/store/tiered"), str(paths)], check=True, capture_output=True)
    return Iceberg(python, jar, folder / "warehouse")


def _install(folder: Path) -> None:
    # Not in the folder that is yet to be moved: an environment knows where it is.
    python = FOLDER.with_name("iceberg-python")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(python)], check=True)
    subprocess.run([python / "bin/python", "-m", "pip", "install", "--quiet", PYSPARK], check=True)
    (folder / "python").symlink_to(python)


def _write_live_paths(store: LargeStore, file: Path) -> None:
    live = pq.read_table(store.live_ids).column("segmentId")
    with file.open("wb") as out:
        for part in sorted(store.parquet_manifest.parent.glob("*.parquet")):
            keys = pq.read_table(part, columns=["key"]).column("key").cast(pa.string())
            ids = pc.struct_field(pc.extract_regex(keys, _SEGMENT_ID), "id")
            lines = pc.binary_join_element_wise(BUCKET, keys.filter(pc.is_in(ids, live)), "\n", "")
            out.writelines(lines.cast(pa.binary()).to_pylist())
