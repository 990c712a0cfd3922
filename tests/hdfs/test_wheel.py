"""From its wheel, where nothing else knows it, the package passes the contracts (`hdfs_cluster`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.house.test_extending import FEWER_EXAMPLES, Environment, built
from tests.house.test_packaging import ROOT
from tests.rigs.hdfs import HdfsCluster

STORE = """
from itertools import count
from os import environ
import pytest
import urllib3
from tieredctl.testing.store_changes import ODD
from tieredctl.testing.stores import StoreContract

numbers = count()

class TestHdfs(StoreContract):
    @pytest.fixture
    def options(self):
        return {"namenode": environ["NAMENODES"], "user": "kafka"}

    @pytest.fixture
    def new_url(self):
        def url():
            folder = f"/wheels/{next(numbers)}"
            active = environ["NAMENODES"].partition(",")[0]
            made = f"{active}/webhdfs/v1{folder}?op=MKDIRS&user.name=kafka"
            assert urllib3.request("PUT", made).status == 200
            return f"hdfs://cluster{folder}"
        return url

    @pytest.fixture
    def odd_keys(self):
        return [key.replace(":", "") for key in ODD]

    @pytest.fixture
    def impossible_keys(self):
        return ("", "n" * 256, "a:b")

    @pytest.fixture
    def largest_batch(self):
        return 10
"""


@pytest.fixture(scope="module")
def environment() -> Iterator[Environment]:
    with TemporaryDirectory(prefix="tieredctl-hdfs-") as name:
        made = Environment(Path(name, "environment"))
        for number, sources in enumerate((ROOT, ROOT / "plugins" / "tieredctl_hdfs")):
            made.install(built(sources, Path(name, f"wheel-{number}")))
        yield made


def test_it_passes_both_contracts_from_its_wheel(environment: Environment, hdfs_cluster: HdfsCluster) -> None:
    folder = environment.folder / "project"
    (folder / "tests" / "hdfs").mkdir(parents=True)
    for name in ("segment_files.py", "test_layout.py"):
        shutil.copy(ROOT / "tests" / "hdfs" / name, folder / "tests" / "hdfs")
    (folder / "tests" / "hdfs" / "test_store.py").write_text(STORE)
    (folder / "conftest.py").write_text(FEWER_EXAMPLES)
    namenodes = f"{hdfs_cluster.active},{hdfs_cluster.standby}"

    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tests")
    done = environment.run(*words, cwd=folder, NAMENODES=namenodes)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_its_store_is_tieredctls(
    environment: Environment, hdfs_cluster: HdfsCluster, new_url: Callable[[], str]
) -> None:
    listed = environment.tieredctl(
        "remote", "du", "--store", new_url(), "--store-option", f"namenode={hdfs_cluster.active}", "--layout", "hdfs"
    )

    assert listed.returncode == 0, listed.stderr
