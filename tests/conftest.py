"""What every test may use."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.cli.command_line import tieredctl  # noqa: F401
from tests.rigs import object_servers
from tests.rigs.availability import rig_unavailable
from tests.rigs.captured_inkless import capture, captured_server, inkless, postgres  # noqa: F401
from tests.rigs.class_archives import share_spark_classes
from tests.rigs.driven_brokers import driven, forgetful_4, kafka_3, kafka_4, kafka_4_4, leftovers_4  # noqa: F401
from tests.rigs.memory import IN_MEMORY
from tests.rigs.object_servers import ObjectServer
from tests.rigs.prerequisites import RigMissing
from tests.shares import chosen_share
from tieredctl.errors import TieredctlError
from tieredctl.kafka import server_connection
from tieredctl.storage.retrying import RetryPolicy

EXAMPLES = int(os.environ.get("TIEREDCTL_PROPERTY_EXAMPLES", "100"))
"""How many inputs a property is tried with that names no number of its own."""
RUNS_FOR_ALL = 4
"""Hypothesis draws other inputs in each run: one that does a share of the exhaustive sets draws fewer, and as many runs
as there are shares more than all."""


def inputs(usual: int) -> int:
    """How many inputs a property is tried with that needs `usual` where others need 100."""
    return max(1, usual * EXAMPLES // 100)


def examples(usual: int) -> int:
    """How many of them Hypothesis draws in this run."""
    return max(1, inputs(usual) // (RUNS_FOR_ALL if chosen_share() else 1))


# How long a case takes says something of the machine, not of the code.
settings.register_profile("without deadlines", deadline=None, max_examples=examples(100))
settings.load_profile("without deadlines")


# What runs the tests in the background may ignore these signals, and every process that a test starts would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Whatever a test or a process that it starts writes is synced again and again, and lives for seconds.
if IN_MEMORY is not None and "TMPDIR" not in os.environ:
    os.environ["TMPDIR"] = tempfile.tempdir = IN_MEMORY

# On a slow machine, what takes seconds would say so, among what a test compares.
os.environ["TIEREDCTL_PROGRESS"] = "none"

TESTS = Path(__file__).parent
CAPTURES = TESTS / "captures"
CAPTURED_CLUSTERS = sorted(
    archive.name.removesuffix(".tar.gz") for archive in CAPTURES.glob("*.tar.gz") if archive.name != "inkless.tar.gz"
)
"""All whose brokers left log directories: of Inkless there is a bucket with its control plane alone."""
KAFKA, KAFKA_OF_TIERING, OLDER_KAFKA = "kafka", "kafka of tiering", "kafka 3.9.1"
"""Two brokers of the newer release: what one is asked for, test after test, would be what the whole run waits for."""
SERVERS = frozenset(
    {"moto", "versitygw", "fake_gcs_server", "gcp_storage_emulator", "azurite", "azurite_with_tls"}
    | {"hdfs_cluster", "postgres"}
)
"""The fixtures that start one, and the parameters that choose one, with dashes for underscores."""
SHARED_CLUSTERS = ("forgetful_4", "leftovers_4", "hdfs_cluster")
"""The fixtures of clusters that several files change one after another."""
STARTS_PROCESSES = re.compile(
    r"\bimport subprocess|\b(ended|failures_of|killed_runs|own_process|process_of|run_to_its_end|run_until)\("
    r"|\.(demand_finished|stopped_by)\("
)
"""What a file does whose tests start processes, which take most of a second each, and may be many."""
DIVIDES = re.compile(r"\b(divided|killed_runs)\(")
"""What a file does whose tests have a share of their cases."""
SPARK = "Spark's session"
SPARK_OF_TABLES = "Spark's session of tables"
SHARING_SPARK = {
    "tests/spark": SPARK,
    "tests/spark/ledger": SPARK_OF_TABLES,
    "tests/spark/pipeline": SPARK_OF_TABLES,
    "tests/spark/cluster": "Spark's cluster",
}
"""By folder, what all of its tests share. A session is slow at whatever it does first; but one for all folders would be
what the whole run waits for."""
LONGEST_FIRST = (
    *(KAFKA, SPARK, KAFKA_OF_TIERING, "spark", "chaos", OLDER_KAFKA),
    *("integration", "house", "cli", "verification", "storage", "formats"),
)
"""Groups, markers and folders; those that wait for brokers are beside those that compute, and the many small files come
last, so that no process works alone in the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what asks an object server, a database or a shared broker, what does a share of its cases, and what starts
    processes; puts first what takes longest."""
    for item in items:
        path = item.nodeid.partition("::")[0]
        if _asks_a_server(item) or _shares_brokers(path):
            item.add_marker(pytest.mark.integration)
        if DIVIDES.search(_source(path)):
            item.add_marker(pytest.mark.divided)
        if STARTS_PROCESSES.search(_source(path)):
            item.add_marker(pytest.mark.processes)

    def rank(item: pytest.Item) -> int:
        places = {_group(item.nodeid), item.path.parent.name, *(mark.name for mark in item.iter_markers())}
        return next((rank for rank, place in enumerate(LONGEST_FIRST) if place in places), len(LONGEST_FIRST))

    items.sort(key=rank)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Spark starts twice as fast with an archive of its classes, also in processes that tests start."""
    if item.get_closest_marker("spark"):
        share_spark_classes()


def _asks_a_server(item: pytest.Item) -> bool:
    chosen = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    names = {value.replace("-", "_") for value in chosen if isinstance(value, str)}
    return not SERVERS.isdisjoint(names.union(getattr(item, "fixturenames", ())))


class GroupsTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Gives all tests of a group to one process, so that what they share is started once."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupsTogether:
    return GroupsTogether(config, log)


def _group(nodeid: str) -> str:
    """The tests that share clusters of Kafka or Spark, or a session; else a file, and of it the older Kafka's apart."""
    path, _, rest = nodeid.partition("::")
    folder = path.rpartition("/")[0]
    parameters = rest.partition("[")[2]
    asked = next((name for name in SHARED_CLUSTERS if name in parameters), None)
    if folder in SHARING_SPARK and not asked and not _starts_spark_itself(path):
        return SHARING_SPARK[folder]
    is_older = "3.9.1" in parameters or "kafka_3" in parameters
    shared = asked or next((name for name in SHARED_CLUSTERS if name in _source(path)), None)
    if shared and not is_older:
        return shared
    if _shares_brokers(path):
        newer = KAFKA_OF_TIERING if folder == "tests/tiering" else KAFKA
        return OLDER_KAFKA if is_older else newer
    return f"{path} {OLDER_KAFKA}" if is_older else path


def _shares_brokers(path: str) -> bool:
    """Whether a file's tests ask for a broker of tests/rigs/driven_brokers.py; others start their own."""
    return "DrivenBroker" in _source(path)


def _starts_spark_itself(path: str) -> bool:
    """Whether a file's tests need no session of this process, but start others."""
    source = _source(path)
    starts = "import subprocess" in source or "process_of(" in source
    return starts and not re.search(r'\bspark(_cluster)?: |usefixtures\("spark"\)', source)


@cache
def _source(path: str) -> str:
    return (TESTS.parent / path).read_text(encoding="utf-8")


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to a store that gets no answer is not made again, so that nothing waits."""

    def raise_at_once(_policy: RetryPolicy, _failures: int, error: TieredctlError) -> None:
        raise error

    monkeypatch.setattr(RetryPolicy, "wait", raise_at_once)


@pytest.fixture
def no_restart_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses connections is not taken for one that is about to start, so that nothing waits."""
    monkeypatch.setattr(server_connection, "_SECONDS_FOR_A_RESTART", 0.0)


@pytest.fixture(autouse=True, scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A configuration folder of the tests' own: plans are signed with a key that is made there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        # xdist gives its workers a width, by which tables and sentences would be cut as in a terminal.
        for name in ("TIEREDCTL_CONFIG", "TIEREDCTL_PLAN_KEY_FILE", "COLUMNS"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def randomness_of_clients() -> Iterator[None]:
    """kafka-python's threads draw from a generator of their own: Hypothesis takes draws from Python's for a strategy's
    that cannot be repeated."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("cluster", "net.compat", "net.connection", "net.manager"):
            patch.setattr(f"kafka.{module}.random", random.Random())
        yield


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for each archive of tests/captures, named like it: what real clusters left behind. Only for reading:
    what a test left there would be another's input."""
    folder = tmp_path_factory.mktemp("captures")
    for archive in sorted(CAPTURES.glob("*.tar.gz")):
        # Python's own tarfile takes longer than many a file's tests.
        subprocess.run(["tar", "--no-same-owner", "-xzf", archive, "-C", folder], check=True)
    unpacked = set(folder.rglob("*"))
    yield folder
    assert set(folder.rglob("*")) == unpacked


@pytest.fixture(scope="session")
def cloud_environment() -> Iterator[None]:
    """What the clouds' libraries find: the test user's key, and neither the configuration nor the identity of who runs
    the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR")):
                patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", object_servers.ACCESS_KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", object_servers.SECRET_KEY)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        patch.setenv("CLOUDSDK_CONFIG", os.devnull)
        patch.setenv("AZURE_STORAGE_ACCOUNT", object_servers.AZURE_ACCOUNT)
        patch.setenv("AZURE_STORAGE_KEY", object_servers.AZURE_KEY)
        patch.setenv("NO_GCE_CHECK", "true")
        yield


@pytest.fixture(scope="session")
def moto(cloud_environment: None) -> Iterator[ObjectServer]:
    """An S3 server that believes everybody."""
    with object_servers.moto() as server:
        yield server


@pytest.fixture(scope="session")
def versitygw(cloud_environment: None) -> Iterator[ObjectServer]:
    """An S3 server that checks signatures, and copies no object above 5 MiB at once."""
    try:
        gateway = object_servers.versitygw(largest_copy_at_once=5 << 20)
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with gateway as server:
        yield server


@pytest.fixture(scope="session")
def fake_gcs_server(cloud_environment: None) -> Iterator[ObjectServer]:
    """A server like Google Cloud Storage that keeps to preconditions of writes."""
    try:
        fake = object_servers.fake_gcs_server()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with fake as server:
        yield server


@pytest.fixture(scope="session")
def gcp_storage_emulator(cloud_environment: None) -> Iterator[ObjectServer]:
    """A server like Google Cloud Storage that takes preconditions and keeps to none."""
    with object_servers.gcp_storage_emulator() as server:
        yield server


@pytest.fixture(scope="session")
def azurite(cloud_environment: None) -> Iterator[ObjectServer]:
    """A server like Azure Blob Storage that checks signatures and keeps to all conditions."""
    try:
        server = object_servers.azurite()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with server as running:
        yield running
