"""Metadata that a plugin reads, of a cluster whose remote log metadata manager is another than Kafka's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import REPOSITORY, Outcome, Tieredctl, own_process
from tests.cli.crashed_cluster import AGED, CLUSTER_ID, ENOUGH, CrashedClusterOnDisk, planned_keys
from tests.metadata_plugin import EXPORT_OPTION, NAME, install_metadata_plugin

USAGE, FAILURE = 2, 1


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the plugin is installed, for this process too."""
    folder = install_metadata_plugin(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def database(tieredctl: Tieredctl, captures: Path, tmp_path: Path, site_packages: Path) -> Path:
    """The folder that the plugin takes as its location: what a captured broker had in its topic."""
    exported = tieredctl("metadata", "export", tmp_path / "export.jsonl", "--log-dir", captures / "kafka-4.3.1/data")
    assert exported.exit_code == 0, exported.err
    return tmp_path


def without_source(outcome: Outcome) -> tuple[int, Mapping[str, Any]]:
    return outcome.exit_code, {name: part for name, part in outcome.document().items() if name != "source"}


def test_segments_are_those_of_the_same_events_from_elsewhere(database: Path, site_packages: Path) -> None:
    path = os.pathsep.join([str(REPOSITORY), str(site_packages)])
    words = ("metadata", "segments", "-o", "json")

    read = own_process(*words, "--metadata-source", f"{NAME}:{database}", PYTHONPATH=path)

    assert read.document()["source"]["kind"] == NAME
    assert read.document()["items"]
    assert without_source(read) == without_source(own_process(*words, "--export", database / "export.jsonl"))


def test_a_store_is_judged_by_it(database: Path, captures: Path, tieredctl: Tieredctl) -> None:
    store = ("--store", f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}", "-o", "json")
    for line in ("verify --level headers", "orphans scan --min-age 0s"):
        judged = tieredctl(*line.split(), *store, "--metadata-source", f"{NAME}:{database}")

        assert judged.document()["source"]["kind"] == NAME, line
        by_export = tieredctl(*line.split(), *store, "--export", database / "export.jsonl")
        assert without_source(judged) == without_source(by_export), line


def test_orphans_are_removed_by_it_only_where_the_cluster_is_said_to_be_gone(
    cluster: CrashedClusterOnDisk, tieredctl: Tieredctl, site_packages: Path
) -> None:
    source = ("--metadata-source", f"{NAME}:{cluster.folder}")
    where = (*cluster.store, "--layout", "aiven", "--to", cluster.plan_file)
    tieredctl("metadata", "export", cluster.folder / "export.jsonl", "--log-dir", cluster.log_dir)
    planned = tieredctl("orphans", "plan", *source, *where, *AGED, *ENOUGH)
    before = set(cluster.objects())
    sure = ("--yes", "--cluster-id", CLUSTER_ID)

    refused = tieredctl("orphans", "apply", cluster.plan_file, *source, *sure)
    assert (planned.exit_code, refused.exit_code, set(cluster.objects())) == (0, USAGE, before), planned.err
    applied = tieredctl("orphans", "apply", cluster.plan_file, *source, *sure, "--offline-metadata")

    assert applied.exit_code == 0, applied.err
    assert before - set(cluster.objects()) == planned_keys(cluster.plan_file)


def test_its_options_reach_the_plugin(database: Path, tieredctl: Tieredctl) -> None:
    (database / "export.jsonl").rename(database / "other.jsonl")
    words = ("metadata", "stats", "--metadata-source", f"{NAME}:{database}", "--metadata-source-option")

    assert tieredctl(*words, f"{EXPORT_OPTION}=other.jsonl").exit_code == 0
    assert tieredctl(*words, "colour=blue")[:2] == (USAGE, "")


def test_what_cannot_be_opened_is_refused(site_packages: Path, tieredctl: Tieredctl, tmp_path: Path) -> None:
    for source, exit_code in (
        ("other:x", FAILURE),
        ("gone:x", FAILURE),
        ("lacking:x", FAILURE),
        ("acme:/no/such/folder", USAGE),
        ("acme", USAGE),
        ("acme:", USAGE),
        (":x", USAGE),
        ("", USAGE),
    ):
        outcome = tieredctl("metadata", "segments", "--metadata-source", source)
        assert (outcome.exit_code, outcome.out, "Traceback" in outcome.err) == (exit_code, "", False), source
    for words in (
        *(("--metadata-source", "acme:x", option, "x:1") for option in ("--log-dir", "--bootstrap-server", "--export")),
        ("--log-dir", tmp_path, "--metadata-source-option", "a=b"),
    ):
        assert tieredctl("metadata", "segments", *words)[:2] == (USAGE, ""), words
