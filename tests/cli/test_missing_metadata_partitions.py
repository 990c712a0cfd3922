"""Metadata partitions that are not here: every command that reads metadata says so first, and judges the rest alone."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import AGED, CAPTURE, ENOUGH, crashed_cluster_on_disk
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.partitioner import metadata_partition

METADATA_PARTITIONS = 4
MISSING = "metadata-partition-missing"
PRICES = """
prices:
  - {store: "file:", perGiBMonth: 0.5, currency: USD, perThousandPuts: 10, perThousandGets: 2}
"""
UNKNOWN_SEGMENT = "AAAAAAAAAAAAAAAAAAAAAA"

LISTINGS = (
    "metadata format {log}",
    "metadata format {log} -o jsonl",
    "metadata segments {log}",
    "metadata stuck {log}",
    "metadata stats {log}",
    "metadata export {folder}/export.parquet {log} --force",
    "verify {log} {store} --level listing",
    "verify {log} {store} --level full",
    "orphans scan {log} {store} --min-age 0s",
    "orphans scan {log} {store} -o jsonl",
    "store check {data}",
    "estimate metadata {log}",
    "estimate cost {log} {store}",
)
"""They answer, and say first what the answer lacks."""

REFUSALS = (
    f"metadata history {UNKNOWN_SEGMENT} {{log}}",
    "metadata lookup nowhere:0 --epoch 0 --offset 0 {log}",
    "metadata epochs nowhere:0 {log}",
    "explain nowhere:0@0 {log}",
    "verify {log} {store} --topic nowhere",
    f"verify {{log}} {{store}} --segment-id {UNKNOWN_SEGMENT}",
    f"remote read {UNKNOWN_SEGMENT} --part log --to {{folder}}/log {{log}} {{store}}",
    "orphans plan {log} {store} --to {folder}/plan",
    "recover metadata {log} {store}",
    f"recover indexes {UNKNOWN_SEGMENT} {{log}} {{store}}",
    f"heal --segment-id {UNKNOWN_SEGMENT} {{log}} {{store}}",
)
"""They have no answer, and no plan: what was not found may be there."""


@dataclass(frozen=True)
class HalfACluster:
    """A captured cluster, of which one metadata partition is not here."""

    tieredctl: Tieredctl
    folder: Path
    data: Path
    store: Path
    missing: int
    is_told_by_events_alone: bool
    """That it is missing: known when all is read."""

    @property
    def found(self) -> str:
        return ", ".join(str(number) for number in range(METADATA_PARTITIONS) if number != self.missing)

    @property
    def sentence(self) -> str:
        return f"metadata partition {self.missing} is missing here (found {self.found})"

    def run(self, *words: str, **options: str) -> Outcome:
        expanded: list[str] = []
        known: Mapping[str, tuple[str, ...]] = {
            "{log}": ("--log-dir", str(self.data)),
            "{store}": ("--store", f"file:{self.store}", "--layout", "local"),
            "{data}": (str(self.data),),
        }
        for word in words:
            expanded += known.get(word, (word.replace("{folder}", str(self.folder)),))
        return self.tieredctl(*expanded, *(f"--{name}={value}" for name, value in options.items()))

    def is_missing(self, topic_id: str, partition: int) -> bool:
        """Whether a user partition has its events in what is not here."""
        return metadata_partition(topic_id, partition, METADATA_PARTITIONS) == self.missing


OTHERS = [pytest.param(number, marks=pytest.mark.exhaustive) for number in (0, 1, 3)]


@pytest.fixture(params=[2, "the last, without the controllers' log", *OTHERS])
def half(
    request: pytest.FixtureRequest,
    tieredctl: Tieredctl,
    captures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> HalfACluster:
    """The last one's number is missed by nobody but the controllers' log, or where events are."""
    capture = captures / "kafka-4.3.1"
    missing, left_out = (request.param, ()) if isinstance(request.param, int) else (3, ("__cluster_metadata-0",))
    data = tmp_path / "data"
    data.mkdir()
    for path in (capture / "data").iterdir():
        if path.name not in (f"__remote_log_metadata-{missing}", *left_out):
            (data / path.name).symlink_to(path)
    (tmp_path / "config.yaml").write_text(PRICES)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    return HalfACluster(tieredctl, tmp_path, data, capture / "remote/kafka-tiered-storage", missing, bool(left_out))


ANSWERED_BY_FINDINGS = ("verify", "store")
"""What they find is their answer, on stdout."""


def test_a_command_says_what_is_missing_and_that_its_answer_is_incomplete(half: HalfACluster) -> None:
    for line in LISTINGS:
        words = line.split()
        outcome = half.run(*words)

        said = outcome.out + outcome.err if words[0] in ANSWERED_BY_FINDINGS else outcome.err
        assert (outcome.exit_code, said.count(half.sentence)) == (5, 1), line
        if not half.is_told_by_events_alone or "format" not in words:
            assert half.sentence in said.splitlines()[0], line


def test_what_was_not_found_is_not_called_unknown_while_it_may_be_missing(half: HalfACluster) -> None:
    for line in REFUSALS:
        outcome = half.run(*line.split())

        assert (outcome.exit_code, outcome.out) == (5, ""), line
        assert half.sentence in outcome.err.splitlines()[0], line
        assert not (half.folder / "plan").exists(), line


def test_verify_calls_nothing_missing_that_may_be_there_and_still_judges_what_is_here(half: HalfACluster) -> None:
    document = half.run("verify", "{log}", "{store}", "-o", "json").document()

    assert [finding["code"] for finding in document["items"]] == [MISSING]
    assert document["items"][0]["evidence"]["missingMetadataPartitions"] == [half.missing]
    assert document["summary"]["complete"] is False

    state = EventStream(LogDirectories([half.data]))
    segments = {record.event.segment_id for record in state.records() if hasattr(record.event, "segment_id")}
    lost = next(path for path in sorted(half.store.rglob("*.log")) if path.name[21:43] in segments)
    damaged = replace(half, store=shutil.copytree(half.store, half.folder / "store"))
    (damaged.store / lost.relative_to(half.store)).unlink()

    outcome = damaged.run("verify", "{log}", "{store}", "-o", "json")

    assert outcome.exit_code == 4
    assert [finding["code"] for finding in outcome.document()["items"]] == [MISSING, "object-missing"]


def test_a_scan_calls_nothing_an_orphan_or_foreign_that_may_be_there(half: HalfACluster) -> None:
    objects = half.run("orphans", "scan", "{log}", "{store}", "--min-age", "0s", "-o", "jsonl").lines()

    elsewhere = [one for one in objects if half.is_missing(one["topicId"], one["partition"])]
    assert {one["status"] for one in elsewhere} <= {"unknown", "in-progress"}
    assert len(elsewhere) < len(objects)
    assert {one["status"] for one in objects if one not in elsewhere} >= {"owned"}


def test_an_export_says_which_partitions_it_covers(half: HalfACluster) -> None:
    for name in ("export.parquet", "export.jsonl"):
        exported = half.run("metadata", "export", f"{{folder}}/{name}", "{log}", "-o", "json")

        read = half.run("metadata", "segments", "--export", f"{{folder}}/{name}", "-o", "json")

        covered = [item["metadataPartition"] for item in exported.document()["items"]]
        assert covered == [number for number in range(METADATA_PARTITIONS) if number != half.missing]
        codes = [[f["code"] for f in one.document()["summary"]["findings"]] for one in (exported, read)]
        assert (read.exit_code, codes) == (5, [[MISSING], [MISSING]])
        assert half.sentence in read.document()["summary"]["findings"][0]["message"]


def test_one_metadata_partition_that_was_asked_for_is_not_incomplete(half: HalfACluster) -> None:
    number = (half.missing + 1) % METADATA_PARTITIONS

    outcome = half.run("metadata", "format", "{log}", "--metadata-partition", str(number))

    assert (outcome.exit_code, outcome.err) == (0, "")
    assert half.run("metadata", "format", "{log}", "--metadata-partition", str(half.missing)).exit_code == 2


def test_nothing_is_removed_by_half_of_the_metadata(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> None:
    whole = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    assert whole.plan(*AGED, *ENOUGH).exit_code == 0
    before = whole.objects()
    data = tmp_path / "half"
    shutil.copytree(whole.log_dir, data, ignore=shutil.ignore_patterns("__remote_log_metadata-0"))
    half = replace(whole, log_dir=data)

    applied = half.apply()
    assert whole.objects().keys() >= before.keys()
    assert whole.apply().exit_code == 0
    quarantined = whole.objects()
    purged = half.purge("--older-than", "0s", "--allow-young", *ENOUGH)

    for outcome in (applied, purged):
        assert outcome.exit_code == 5
        assert "metadata partition 0 is missing here (found 1, 2, 3)" in outcome.err
    assert whole.objects().keys() >= quarantined.keys()
