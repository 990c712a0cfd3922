"""A live cluster whose remote log metadata manager is not Kafka's own: by what the metadata topic says, nothing is
called missing or orphaned, nothing is removed, and nothing is rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.maven import JAVA_SOURCES, compile_java
from tieredctl.cli.main import run
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS

pytestmark = pytest.mark.integration

OTHER = "OtherMetadataManager"
ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
SURE = ("--apply", "--yes")
COMMANDS = [
    ("verify",),
    ("orphans", "scan"),
    ("orphans", "plan", "--to", "plan"),
    ("orphans", "purge", "--older-than", "24h", "--yes"),
    ("partition", "remove", ID),
    ("partition", "remove", ID, *SURE),
    ("partition", "remove", ID, *SURE, "--even-if-live", "--segment-events-only"),
    ("recover", "metadata"),
    ("recover", "metadata", *SURE),
    ("recover", "indexes", ID),
    ("recover", "indexes", ID, *SURE),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    jars = jars_of("4.3.1")
    manager = compile_java([JAVA_SOURCES / f"{OTHER}.java"], jars.class_path)
    with KafkaBroker(jars, properties={METADATA_CLASS: OTHER}, extra_class_path=[manager]) as broker:
        yield broker


def test_it_is_refused_by_its_name(
    broker: KafkaBroker,
    captures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    where = ("--bootstrap-server", broker.bootstrap_server)
    store = ("--store", f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}", "--layout", "local")
    for words in COMMANDS:
        sure = ("--cluster-id", broker.cluster_id) if "--yes" in words else ()

        code = run([*words, *sure, *where, *store])

        said = capfd.readouterr()
        assert (code, said.out) == (2, ""), (words, said.err)
        assert f"{METADATA_CLASS} is {OTHER}, which does not keep its metadata in __remote_log_metadata." in said.err
        assert list(tmp_path.iterdir()) == [], words
