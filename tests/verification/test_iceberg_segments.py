"""Aiven's Iceberg mode: segments that are rows of a table, under the names that the plugin and Iceberg give."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tieredctl.cli.main import run
from tieredctl.layouts.registry import layout_named

TOPIC = "slow31"
TABLE = "warehouse/default/slow31/"
LEVELS = ("listing", "headers", "full")
SUFFIXES = (".log", ".indexes", ".rsm-manifest")
OPERATION = "6a1a1d6d-97a5-4e5c-a03c-6b4ef9f0b1d7"
TABLE_METADATA = (
    f"00000-{OPERATION}.metadata.json",
    f"00001-{OPERATION}.gz.metadata.json",
    f"snap-7081234567891011121-1-{OPERATION}.avro",
    f"{OPERATION}-m0.avro",
    "version-hint.text",
)

each_level = pytest.mark.parametrize("level", LEVELS)


@dataclass(frozen=True)
class IcebergCluster:
    """A captured cluster as if some segments of a topic had been copied with segment.format=iceberg."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def bucket(self) -> Path:
        return self.folder / "bucket"

    def manifests(self) -> list[Path]:
        """Of the topic's segments, but the last of a partition."""
        return sorted(self.bucket.rglob(f"{TOPIC}-*/0/*.rsm-manifest"))[:-1]

    def move(self, manifest: Path, table: str | None = TABLE) -> str:
        """Takes a segment's objects away, and writes it to a table; its id."""
        segment_id = manifest.stem[-22:]
        for suffix in SUFFIXES:
            manifest.with_suffix(suffix).unlink()
        if table:
            self.write(f"{table}metadata/{segment_id}.puffin", b"PFA1")
            self.write(f"{table}data/00000-1-{OPERATION}-00001.parquet", b"PAR1")
            for name in TABLE_METADATA:
                self.write(f"{table}metadata/{name}", b"table")
        return segment_id

    def write(self, key: str, data: bytes) -> None:
        path = self.bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def verify(self, *words: str) -> Outcome:
        return self.run("verify", "--older-than", "99999d", "--topic", TOPIC, *words, "-o", "json")

    def run(self, *words: str) -> Outcome:
        code = run([*words, "--log-dir", str(self.folder / "data"), "--store", f"file:{self.bucket}"])
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        return Outcome(code, said.out, said.err)


@pytest.fixture
def cluster(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> IcebergCluster:
    capture = captures / "aiven-plain-4.3.1"
    (tmp_path / "data").symlink_to(capture / "data")
    shutil.copytree(capture / "bucket", tmp_path / "bucket", copy_function=os.link)
    return IcebergCluster(tmp_path, capsys)


def evidence(finding: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = finding["evidence"]
    return found


@each_level
def test_segments_in_a_table_are_not_missing_and_not_judged(cluster: IcebergCluster, level: str) -> None:
    ids = [cluster.move(manifest) for manifest in cluster.manifests()[:2]]

    outcome = cluster.verify("--level", level)

    finding = outcome.finding(exit_code=5)
    assert (finding["code"], finding["severity"]) == ("segments-in-other-form", "warning")
    assert evidence(finding)["segments"] == len(ids) == 2
    assert (evidence(finding)["form"], evidence(finding)["table"]) == ("iceberg", TABLE)
    assert not outcome.document()["summary"]["complete"]


def test_nothing_of_a_table_is_unreferenced_in_the_whole_store(cluster: IcebergCluster) -> None:
    cluster.move(cluster.manifests()[0])

    outcome = cluster.run("verify", "--older-than", "99999d", "--level", "listing", "-o", "json")

    assert outcome.exit_code == 5
    found = [item["evidence"].get("key", "") for item in outcome.document()["items"]]
    assert [key for key in found if key.startswith("warehouse")] == []


def test_one_segment_that_is_asked_for(cluster: IcebergCluster) -> None:
    segment_id = cluster.move(cluster.manifests()[0])

    outcome = cluster.verify("--segment-id", segment_id)

    assert evidence(outcome.finding(exit_code=5))["segmentId"] == segment_id


@each_level
def test_what_is_in_no_table_is_missing(cluster: IcebergCluster, level: str) -> None:
    first, second, *_ = cluster.manifests()
    cluster.move(first)
    lost = cluster.move(second, table=None)

    outcome = cluster.verify("--level", level)

    assert outcome.exit_code == 4
    codes = {(item["code"], evidence(item).get("segmentId")) for item in outcome.document()["items"]}
    assert codes == {("object-missing", lost), ("segments-in-other-form", first.stem[-22:])}


def test_a_segment_that_lacks_one_object_is_not_looked_for_in_tables(cluster: IcebergCluster) -> None:
    manifest = cluster.manifests()[0]
    manifest.with_suffix(".log").unlink()
    cluster.write(f"{TABLE}metadata/{manifest.stem[-22:]}.puffin", b"PFA1")

    assert cluster.verify().finding(exit_code=4)["code"] == "object-missing"


def test_tables_in_another_store_are_recognized_by_an_option(cluster: IcebergCluster) -> None:
    cluster.move(cluster.manifests()[0], table=None)

    untold = cluster.verify()
    told = cluster.verify("--layout-option", "segment-format=iceberg")

    assert untold.exit_code == 4
    assert evidence(told.finding(exit_code=5))["table"] is None


def test_a_format_that_there_is_not(cluster: IcebergCluster) -> None:
    outcome = cluster.verify("--layout", "aiven", "--layout-option", "segment-format=parquet")

    assert outcome.exit_code == 2
    assert "kafka, iceberg" in outcome.err


def test_nothing_of_a_table_is_ever_orphaned(cluster: IcebergCluster) -> None:
    cluster.move(cluster.manifests()[0])

    outcome = cluster.run("orphans", "scan", "--min-age", "0s", "-o", "jsonl")

    rows = [json.loads(line) for line in outcome.out.splitlines()]
    of_tables = [row for row in rows if row["key"].startswith("warehouse")]
    assert len(of_tables) == 2 + len(TABLE_METADATA)
    assert {(row["status"], row["cause"]) for row in of_tables} == {("unknown", None)}


def test_a_store_of_tables_alone_is_recognized_by_its_keys(cluster: IcebergCluster) -> None:
    for manifest in sorted(cluster.bucket.rglob("*.rsm-manifest")):
        cluster.move(manifest, f"{TABLE}{manifest.parts[-3]}/")
    for path in cluster.bucket.iterdir():
        if path.name != "warehouse":
            shutil.rmtree(path)

    outcome = cluster.verify("--level", "listing")

    assert outcome.exit_code == 5
    assert {item["code"] for item in outcome.document()["items"]} == {"segments-in-other-form"}


@pytest.mark.parametrize(
    "key",
    ["a/metadata/short.puffin", "metadata/v1.metadata.json", "t/metadata/notes.txt", "t/data/part.csv", "t/x.parquet"],
)
def test_keys_that_tell_of_no_segment(key: str) -> None:
    form = layout_named("aiven").other_form(key)

    assert form is None or form.segment_id is None


def test_a_local_store_has_one_form() -> None:
    layout = layout_named("local")

    assert (layout.other_form("t/metadata/AAAAAAAAAAAAAAAAAAAAAA.puffin"), layout.form_outside) == (None, None)
