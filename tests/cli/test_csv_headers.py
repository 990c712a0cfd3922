"""`-o csv` of any listing begins with the same header, whether there is anything to list or not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl, this_process
from tests.cli.crashed_cluster import CrashedClusterOnDisk
from tests.cli.wal.store_of_uploads import upload_words
from tests.metadata_logs import write_log
from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.errors import ExitCode
from tieredctl.formats.checkpoints import CheckpointedOffset, encode_offset_checkpoint

SEGMENT = "V_QmtSRAS-qC_YrVmRd2HA"
LOOKUP = ("metadata", "lookup", "orders7:0", "--epoch")
METADATA, STORE, WAL = (
    ("--log-dir", "{data}"),
    ("--store", "file:{store}", "--layout", "local"),
    ("--store", "file:{wal}"),
)
EMPTIED: list[tuple[str, ...]] = [
    *(("metadata", verb, *METADATA) for verb in ("format", "segments")),
    *(("remote", verb, *STORE) for verb in ("ls", "du")),
    *((*words, *METADATA, *STORE) for words in (("orphans", "scan"), ("estimate", "cost"))),
    ("wal", "inspect", *WAL),
    ("context", "list"),
]
"""Commands by what they read: once the captured cluster, once as much of it as has nothing."""
NONE_SELECTED: list[tuple[tuple[str, ...], ...]] = [
    (("metadata", "history", SEGMENT, *METADATA), (), ("--since", "2030-01-01")),
    ((*LOOKUP, "0", *METADATA), ("--offset", "5"), ("--offset", "99999999")),
    (("snapshot", "compare", "{first}", "{data}"), (), ()),
    (("snapshot", "inspect", "{first}"), (), ("--type", "ZK_MIGRATION_STATE_RECORD")),
]


@pytest.fixture
def places(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A captured cluster, a store of combined objects, and prices."""
    capture = captures / "kafka-4.3.1"
    write_partition(tmp_path / "logs", replace(ORDERS[0], topic="orders7"), [batch(0)])
    (tmp_path / "wal").mkdir()
    this_process(*upload_words(tmp_path / "logs", tmp_path / "wal"), "--apply")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    (tmp_path / "config.yaml").write_text(
        "prices: [{store: 'file:', perGiBMonth: 1, currency: EUR}]\ncontexts: {one: {bootstrapServer: 'b:9092'}}\n"
    )
    (first, *_) = sorted((capture / "data/__cluster_metadata-0").glob("*.checkpoint"))
    return {
        "data": capture / "data",
        "store": capture / "remote/kafka-tiered-storage",
        "wal": tmp_path / "wal",
        "first": first,
    }


@pytest.fixture
def nothing(places: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """The same places, as a cluster has them that has just been set up."""
    empty = tmp_path / "empty"
    for name in ("data", "store", "wal"):
        (empty / name).mkdir(parents=True)
    shutil.copy(places["data"] / "meta.properties", empty / "data")
    logs = [folder.name.rpartition("-") for folder in places["data"].glob("__remote_log_metadata-*")]
    for _, _, number in logs:
        write_log(empty / "data", int(number), [])
    checkpoint = encode_offset_checkpoint(CheckpointedOffset(topic, int(number), 0) for topic, _, number in logs)
    (empty / "data" / "replication-offset-checkpoint").write_bytes(checkpoint)
    return places | {name: empty / name for name in ("data", "store", "wal")}


def listed(tieredctl: Tieredctl, words: tuple[str, ...], at: dict[str, Path], output: str) -> Outcome:
    outcome = tieredctl(*(word.format_map(at) for word in words), "-o", output)
    assert outcome.exit_code in (ExitCode.CLEAN, ExitCode.FINDINGS), outcome.err
    return outcome


def header(tieredctl: Tieredctl, words: tuple[str, ...], at: dict[str, Path]) -> str:
    """The first of the lines of what has something to list: it names all fields of `-o jsonl`."""
    first, *others = listed(tieredctl, words, at, "csv").out.splitlines()
    fields = {name for item in listed(tieredctl, words, at, "jsonl").lines() for name in item}
    assert others, words
    assert fields <= {*first.split(",")}, words
    return first


def test_of_an_empty_source_the_header_alone_is_printed(
    places: dict[str, Path], nothing: dict[str, Path], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for words in EMPTIED:
        full = header(tieredctl, words, places)
        if words[0] == "context":
            (tmp_path / "config.yaml").write_text("{}\n")

        assert listed(tieredctl, words, nothing, "csv").out == f"{full}\n", words


def test_where_nothing_is_selected_the_header_alone_is_printed(places: dict[str, Path], tieredctl: Tieredctl) -> None:
    for words, some, none in NONE_SELECTED:
        full = header(tieredctl, (*words, *some), places)
        nowhere = places | {"first": places["data"]}

        assert listed(tieredctl, (*words, *none), nowhere, "csv").out == f"{full}\n", words


def test_the_quarantine_the_lease_and_the_cleaning_have_headers_too(
    planned: CrashedClusterOnDisk, captures: Path, tieredctl: Tieredctl
) -> None:
    store = ("--store", f"file:{planned.bucket}")
    for words in (("orphans", "quarantine", "ls", *store), ("orphans", "unlock", *store)):
        assert tieredctl(*words, "-o", "csv").out.count("\n") == 1
    planned.apply()
    header, *rows = tieredctl("orphans", "quarantine", "ls", *store, "-o", "csv").out.splitlines()

    assert header == "key,size,lastModified,clusterId,planId,quarantined,quarantineKey"
    assert rows
    shown = tieredctl("snapshot", "clean", captures / "kafka-4.3.1/data", "-o", "csv").out
    assert shown.startswith("file,kind,action,endOffset,epoch,baseOffset,files,size,reason\n")
