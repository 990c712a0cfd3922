"""What is served is what docs/monitoring.md lists, and only what was seen lately."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace

import pytest

from tests.cli.command_line import REPOSITORY
from tests.cli.running_exporter import Samples
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.metadata.stats import EventStatistics
from tieredctl.ops.monitoring.followed_events import FollowedFigures
from tieredctl.ops.monitoring.partition_figures import PartitionFigures, PartitionLag
from tieredctl.ops.monitoring.topic_figures import TopicFigures
from tieredctl.ops.status.board import StoreFacts
from tieredctl.ops.status.last_results import LastResults, LastScan, LastVerification
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.wiring.exporter import (
    CLUSTER,
    DIAGNOSIS,
    METADATA,
    RESULTS,
    STORE,
    ClusterSeen,
    Observation,
    PartState,
)
from tieredctl.wiring.exporter_metrics import ExporterMetrics

NOW_MS = 1_790_000_000_000
INTERVAL_SECONDS = 30.0
DAY_SECONDS = 86_400
EVERY_PART = (CLUSTER, METADATA, DIAGNOSIS, STORE, RESULTS)
METRIC = re.compile(r"`(tieredctl_[a-z_]+)`")
ALWAYS = ("tieredctl_exporter_", "tieredctl_build_info")
OF_RESULTS = ("tieredctl_last_", "tieredctl_orphaned_")


def everything_known() -> Observation:
    seen = PartState(is_up=True, last_success_ms=NOW_MS)
    numbers = {one.name: 1 for one in fields(TopicFigures) if one.name not in ("topic", "is_in_cluster")}
    metadata = FollowedFigures(
        cluster_id="cluster",
        metadata=ReplayedMetadata(SegmentEvents(is_described=True)),
        partitions={0: EventStatistics(events=1)},
        findings=Counter(),
        is_broken=False,
        may_be_more=False,
        starts={0: 0},
    )
    return Observation(
        parts=dict.fromkeys(EVERY_PART, seen),
        readings=1,
        seconds=0.1,
        metadata=metadata,
        cluster=ClusterSeen(ClusterSnapshot(Clock(NOW_MS, 1), broker_releases={1: None}), "cluster", None),
        topics=[TopicFigures("orders", is_in_cluster=True, **numbers)],
        partitions=[PartitionFigures("orders", 0, 1, PartitionLag(1, 1, 1.0, 1), 1, 1)],
        findings=Counter({("copy-stuck", "warning"): 1}),
        store=StoreFacts("file:/store", 1, 1),
        results=LastResults(
            LastScan(NOW_MS, 1, 1, 1, True, "scan"),
            LastVerification(
                NOW_MS, "full", 1, 1, 1, 1, True, "verification", {(FindingCode.INDEX_DAMAGED, Severity.ERROR): 1}
            ),
        ),
    )


def served(seen: Observation, after_seconds: float = 0) -> Samples:
    metrics = ExporterMetrics(lambda: seen, INTERVAL_SECONDS, lambda: NOW_MS / 1000 + after_seconds)
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def names(samples: Samples) -> set[str]:
    return {key[0] for key in samples}


def test_the_page_lists_what_is_served_and_nothing_else() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| `tieredctl_")]

    assert {name for line in table for name in METRIC.findall(line)} == names(served(everything_known()))


def test_while_a_look_hangs_only_what_earlier_runs_left_is_served() -> None:
    samples = served(everything_known(), after_seconds=DAY_SECONDS)

    assert [name for name in names(samples) if not name.startswith((*ALWAYS, *OF_RESULTS))] == []
    assert samples["tieredctl_exporter_up",] == 0
    assert {samples["tieredctl_exporter_part_up", f"part={part}"] for part in EVERY_PART} == {0}


def test_what_was_seen_before_the_clock_was_set_back_is_not_known_to_be_new() -> None:
    samples = served(everything_known(), after_seconds=-DAY_SECONDS)

    assert [name for name in names(samples) if not name.startswith((*ALWAYS, *OF_RESULTS))] == []
    assert samples["tieredctl_exporter_up",] == 0


def test_brokers_whose_releases_could_not_be_asked_for_are_not_none() -> None:
    seen = everything_known()
    assert seen.cluster is not None
    silent = replace(seen.cluster.snapshot, broker_releases={})

    samples = served(replace(seen, cluster=seen.cluster._replace(snapshot=silent)))

    assert ("tieredctl_brokers",) not in samples


def test_results_of_a_part_cover_nothing_that_is_known_and_are_not_complete() -> None:
    seen = everything_known()
    assert seen.results is not None
    assert seen.results.scan is not None
    assert seen.results.verification is not None
    of_a_part = LastResults(
        replace(seen.results.scan, selection="topic a"), replace(seen.results.verification, selection="topic a")
    )

    samples = served(replace(seen, results=of_a_part))

    assert ("tieredctl_last_verification_coverage",) not in samples
    assert samples["tieredctl_last_verification_complete",] == samples["tieredctl_last_scan_complete",] == 0


def test_a_diagnosis_that_is_not_due_yet_is_no_failure() -> None:
    seen, soon = everything_known(), DAY_SECONDS / 2
    soon_ms = NOW_MS + round(soon * 1000)
    later = PartState(is_up=True, last_success_ms=soon_ms)
    paused = replace(seen.parts[DIAGNOSIS], next_look_ms=soon_ms)
    parts = dict.fromkeys(EVERY_PART, later) | {DIAGNOSIS: paused}

    samples = served(replace(seen, parts=parts), after_seconds=soon)

    assert samples["tieredctl_exporter_up",] == 1
    assert samples["tieredctl_exporter_last_success_timestamp_seconds", f"part={DIAGNOSIS}"] == NOW_MS / 1000


@pytest.mark.parametrize("part", EVERY_PART)
def test_a_part_that_never_answered_is_down(part: str) -> None:
    seen = everything_known()
    silent = PartState(failures=1, error=TieredctlError(ErrorCode.UNREADABLE, "No answer."))

    samples = served(replace(seen, parts={**seen.parts, part: silent}))

    assert samples["tieredctl_exporter_up",] == samples["tieredctl_exporter_part_up", f"part={part}"] == 0
