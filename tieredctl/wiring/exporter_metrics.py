"""What an exporter knows, as families of metrics. What is not known has no sample: it is never zero."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tieredctl import __version__
from tieredctl.ops.monitoring.followed_events import FollowedFigures
from tieredctl.ops.monitoring.partition_figures import PartitionFigures
from tieredctl.ops.monitoring.topic_figures import TopicFigures
from tieredctl.ops.status.board import StoreFacts
from tieredctl.ops.status.last_results import LastResults, LastScan, LastVerification
from tieredctl.wiring.exporter import CLUSTER, METADATA, RESULTS, STORE, Observation, PartState

_LEAST_SECONDS = 300.0
_INTERVALS = 5
"""Samples expire after this many missed intervals, and at least so many seconds."""

_Field = Callable[[TopicFigures], float | None]


def _gauge(name: str, meaning: str) -> Metric:
    return Metric(f"tieredctl_{name}", meaning, "gauge")


class _Family:
    """A gauge that gets its samples."""

    def __init__(self, name: str, meaning: str) -> None:
        self.metric = _gauge(name, meaning)

    def add(self, value: float | None, **labels: str) -> None:
        """Adds a sample, if it is known."""
        if value is not None:
            self.metric.add_sample(self.metric.name, labels, value)


def _single(name: str, meaning: str, value: float | None, **labels: str) -> Metric:
    family = _Family(name, meaning)
    family.add(value, **labels)
    return family.metric


def _counted(name: str, meaning: str, total: int) -> Metric:
    """A counter without labels."""
    counter = Metric(f"tieredctl_{name}", meaning, "counter")
    counter.add_sample(f"tieredctl_{name}_total", {}, total)
    return counter


@dataclass(frozen=True, slots=True)
class ExporterMetrics(Collector):
    """The families of what was observed last."""

    observe: Callable[[], Observation]
    interval_seconds: float
    now: Callable[[], float] = time.time
    """In seconds since the epoch."""

    def collect(self) -> Iterator[Metric]:
        return (metric for metric in self._families() if metric.samples)

    def _families(self) -> Iterator[Metric]:
        observation, now = self.observe(), self.now()
        labels = {"version": __version__, "python_version": platform.python_version()}
        yield _single("build_info", "The running tieredctl.", 1, **labels)
        fresh = {name for name, state in observation.parts.items() if state.is_up and self._is_fresh(state, now)}
        yield from _of_exporter(observation, fresh)
        if fresh & {CLUSTER, METADATA} and observation.cluster_id is not None:
            yield _single("cluster_info", "The cluster that is watched.", 1, cluster_id=observation.cluster_id)
        is_live = CLUSTER in observation.parts
        if CLUSTER in fresh and observation.cluster is not None and observation.cluster.standstill is None:
            snapshot = observation.cluster.snapshot
            yield _single("brokers", "Brokers that answered.", len(snapshot.broker_releases) or None)
            yield _single("tiered_topics", "Topics that are tiered.", len(snapshot.topics))
        if METADATA in fresh and observation.metadata is not None:
            yield from _of_metadata(observation.metadata)
        if fresh & {CLUSTER, METADATA}:
            yield _single(
                "topics_without_series",
                "Topics that are counted together as (other), since --max-topics have series of their own.",
                observation.topics_in_others,
            )
            yield from _of_topics(observation, now)
            yield from _of_partitions(observation.partitions, now)
        if observation.findings is not None and (CLUSTER if is_live else METADATA) in fresh:
            yield _of_findings(observation)
        if STORE in fresh and observation.store is not None:
            yield from _of_store(observation.store)
        if RESULTS in observation.parts and observation.results is not None:
            yield from _of_results(observation.results)

    def _is_fresh(self, state: PartState, now: float) -> bool:
        if state.last_success_ms is None:
            return False
        most = max(_LEAST_SECONDS, _INTERVALS * self.interval_seconds)
        ago = now - state.last_success_ms / 1000
        paused = max(0, state.next_look_ms - state.last_success_ms) / 1000
        return -most <= ago <= paused + most  # a clock that was set back says nothing of how long ago it was


@dataclass(frozen=True, slots=True)
class MetricsOfContexts(Collector):
    """The families of several contexts, whose names are the label `context`."""

    metrics: Mapping[str, ExporterMetrics]

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, metrics in self.metrics.items():
            for one in metrics.collect():
                family = families.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                family.samples += [sample._replace(labels={**sample.labels, "context": name}) for sample in one.samples]
        yield from families.values()


def _of_exporter(observation: Observation, fresh: set[str]) -> Iterator[Metric]:
    is_up = bool(observation.parts) and fresh >= set(observation.parts)
    yield _single("exporter_up", "Whether every part could be looked at, and lately.", is_up)
    up = _Family("exporter_part_up", "Whether a part could be looked at, and lately.")
    last = _Family("exporter_last_success_timestamp_seconds", "When a part could be looked at last.")
    failures = Metric("tieredctl_exporter_failures", "How often a part could not be looked at.", "counter")
    for name, state in sorted(observation.parts.items()):
        up.add(name in fresh, part=name)
        last.add(_seconds(state.last_success_ms), part=name)
        failures.add_sample("tieredctl_exporter_failures_total", {"part": name}, state.failures)
    yield from (up.metric, last.metric, failures)
    yield _single("exporter_refresh_seconds", "How long the last look at all parts took.", observation.seconds)
    yield _counted(
        "exporter_metadata_readings",
        "How often the metadata was read from its beginning: at the start, and when the topic was recreated or cut.",
        observation.readings,
    )
    yield _counted(
        "exporter_metadata_losses",
        "How often the metadata topic was recreated, or lost what had been read, since the exporter started.",
        observation.losses,
    )


def _of_metadata(figures: FollowedFigures) -> Iterator[Metric]:
    yield _single("metadata_complete", "Whether nothing of the metadata is known to be missing.", not figures.is_broken)
    yield _single(
        "metadata_may_be_more",
        "Whether more metadata than was read may exist, so that all figures are the least there is.",
        figures.may_be_more,
    )
    families = {
        "events": _Family("metadata_events", "Records of a metadata partition."),
        "value_bytes": _Family("metadata_bytes", "Bytes of those records' values."),
        "dead_events": _Family("metadata_dead_events", "Events of segments that are gone."),
        "undecodable": _Family("metadata_undecodable_events", "Records that cannot be decoded."),
        "live_segments": _Family("metadata_live_segments", "Segments that a broker still knows."),
    }
    ratio = _Family("metadata_dead_ratio", "The share of events that are of segments that are gone.")
    for number, one in figures.partitions.items():
        for name, family in families.items():
            family.add(getattr(one, name), metadata_partition=str(number))
        ratio.add(one.dead_events / one.events if one.events else 0.0, metadata_partition=str(number))
    yield from (family.metric for family in families.values())
    yield ratio.metric


def _of_topics(observation: Observation, now: float) -> Iterator[Metric]:
    def age(at_ms: int | None) -> float | None:
        return None if at_ms is None else max(0.0, now - at_ms / 1000)

    def lag_seconds(one: TopicFigures) -> float | None:
        return 0.0 if one.lag_offsets == 0 else age(one.lag_since_ms)

    fields: dict[tuple[str, str], _Field] = {
        ("remote_segments", "Segments in remote storage, by the metadata."): lambda one: one.segments,
        ("remote_bytes", "Bytes in remote storage, by the metadata."): lambda one: one.remote_bytes,
        ("local_bytes", "Bytes on the leaders' disks."): lambda one: one.local_bytes,
        ("lag_offsets", "Offsets that are not tiered; active segments never are."): lambda one: one.lag_offsets,
        ("lag_bytes", "About as many bytes are not tiered; active segments never are."): lambda one: one.lag_bytes,
        (
            "lag_segment_sizes",
            "Bytes that are not tiered, in segments of segment.bytes, of the partition that is furthest behind.",
        ): lambda one: one.lag_segment_sizes,
        ("segment_seconds", "How long a segment takes records: segment.ms."): lambda one: (
            None if one.segment_ms is None else one.segment_ms / 1000
        ),
        (
            "intended_lag_seconds",
            "How long closed segments wait for their copy as they should: remote.copy.lag.ms; 0 where they do not.",
        ): lambda one: None if one.intended_lag_ms is None else one.intended_lag_ms / 1000,
        ("lag_seconds", "Age of the newest tiered record of the partition that lags longest."): lag_seconds,
        ("stuck_copies", "Copies that began too long ago and did not end."): lambda one: one.stuck_copies,
        ("stuck_deletions", "Deletions that began too long ago and did not end."): lambda one: one.stuck_deletions,
        ("oldest_stuck_copy_seconds", "How long the oldest stuck copy takes."): lambda one: age(
            one.oldest_stuck_copy_ms
        ),
        (
            "oldest_stuck_deletion_seconds",
            "How long the oldest stuck deletion takes.",
        ): lambda one: age(one.oldest_stuck_deletion_ms),
    }
    for (name, meaning), value in fields.items():
        family = _Family(name, meaning)
        for one in observation.topics:
            family.add(value(one), topic=one.topic)
        yield family.metric


def _of_partitions(partitions: Sequence[PartitionFigures], now: float) -> Iterator[Metric]:
    """Without a leader the label is empty, which Prometheus takes for none."""
    families = {
        "offsets": _Family("partition_lag_offsets", "Offsets of a partition in trouble that are not tiered."),
        "segments": _Family(
            "partition_lag_segment_sizes",
            "Bytes of a partition in trouble that are not tiered, in segments of segment.bytes.",
        ),
        "seconds": _Family("partition_lag_seconds", "Age of the newest tiered record of a partition in trouble."),
        "stuck": _Family("partition_stuck_copies", "Copies of a partition that began too long ago and did not end."),
        "failed": _Family("partition_failed_copies", "Tries in a row of the copy that fails, of a partition."),
    }
    for one in partitions:
        leader = "" if one.leader is None else str(one.leader)
        labels = {"topic": one.topic, "partition": str(one.partition), "leader": leader}
        if one.lag is not None:
            families["offsets"].add(one.lag.offsets, **labels)
            families["segments"].add(one.lag.segment_sizes, **labels)
            since_ms = one.lag.since_ms
            families["seconds"].add(None if since_ms is None else max(0.0, now - since_ms / 1000), **labels)
        families["stuck"].add(one.stuck_copies or None, **labels)
        families["failed"].add(one.failed_copies or None, **labels)
    yield from (family.metric for family in families.values())


def _of_findings(observation: Observation) -> Metric:
    family = _Family("current_findings", "Findings about the cluster and its metadata, by code and severity.")
    for (code, severity), count in sorted((observation.findings or {}).items()):
        family.add(count, code=code, severity=severity)
    return family.metric


def _of_store(store: StoreFacts) -> Iterator[Metric]:
    yield _single("quarantined_objects", "Objects in quarantine.", store.quarantined)
    yield _single("quarantined_bytes", "Bytes in quarantine.", store.quarantined_bytes)


def _of_results(results: LastResults) -> Iterator[Metric]:
    scan, last = results.scan, results.verification
    if scan is not None:
        yield _single("last_scan_timestamp_seconds", "When the last scan for orphans ended.", _seconds(scan.at_ms))
        yield _single("last_scan_complete", "Whether the last scan saw everything.", _saw_all(scan))
        yield _single("last_scan_objects", "Objects that the last scan saw.", scan.objects)
        yield _single("orphaned_objects", "Orphaned objects, by the last scan.", scan.orphans)
        yield _single("orphaned_bytes", "Bytes of orphaned objects, by the last scan.", scan.orphan_bytes)
    if last is not None:
        yield _single("last_verification_timestamp_seconds", "When the last verification ended.", _seconds(last.at_ms))
        yield _single("last_verification_complete", "Whether the last verification could look at all.", _saw_all(last))
        yield _single("last_verification_coverage", "The share of segments that it looked at.", last.coverage)
        segments = _Family("last_verification_segments", "Segments, by what the last verification did with them.")
        for outcome, count in (("read", last.read), ("skipped", last.skipped), ("not_looked_at", last.not_looked_at)):
            segments.add(count, outcome=outcome)
        yield segments.metric
        findings = _Family("last_verification_findings", "Findings of the last verification, by severity.")
        for severity, count in last.severities.items():
            findings.add(count, severity=severity.label)
        yield findings.metric


def _saw_all(result: LastScan | LastVerification) -> bool:
    return result.is_complete and result.selection is None


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000
