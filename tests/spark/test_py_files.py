"""A zip of the sources, as --py-files of spark-submit would take it: no plugin is found where nothing is installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.spark.damage import REMOTE
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "tieredctl",
    ROOT / "plugins/tieredctl_aiven/tieredctl_aiven",
    ROOT / "plugins/tieredctl_local/tieredctl_local",
    ROOT / "spark/tieredctl_spark",
)
RUN_JOB = (
    "import runpy, sys; sys.path += sys.argv[1:3]; sys.argv = sys.argv[2:]; runpy.run_module({!r}, run_name='__main__')"
)


def test_a_plain_zip_of_sources_is_refused_in_a_sentence(captures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    sources, libraries = tmp_path / "sources.zip", tmp_path / "libraries"
    with ZipFile(sources, "w") as zipped:
        for package in PACKAGES:
            for path in package.rglob("*"):
                if path.suffix != ".pyc":
                    zipped.write(path, path.relative_to(package.parent))
    libraries.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "tieredctl" not in path.name:
            (libraries / path.name).symlink_to(path)
    cluster = captures / "kafka-4.3.1"
    words = ["--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}", "--layout", "local"]

    done = subprocess.run(
        [
            *(sys.executable, "-S", "-c", RUN_JOB.format("tieredctl_spark.jobs.verify"), str(sources), str(libraries)),
            *(*words, "--output", str(tmp_path / "output")),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == ExitCode.FAILURE, done.stderr
    sentence, hint = done.stderr.splitlines()
    assert sentence == "No store can be found: tieredctl is not installed here, its sources were only copied."
    assert "make spark-archive" in hint
    assert not (tmp_path / "output").exists()
