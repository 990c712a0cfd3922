"""The lines of the screen: what is asked, what is known, and which command goes deeper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from shlex import quote
from typing import NamedTuple

from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_kind import Severity, severities_text
from tieredctl.model.quantities import age_text, size_text
from tieredctl.model.result_row import camel_case
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.status.facts import ClusterFacts
from tieredctl.ops.status.last_results import SCAN, VERIFY, LastResults, LastScan, LastVerification

UNKNOWN = "unknown"
_SEVERITIES = (Severity.CRITICAL, Severity.ERROR, Severity.WARNING, Severity.INFO)
_GRAVE = (Severity.CRITICAL, Severity.ERROR)


class StatusLine(NamedTuple):
    """One line. `command` is tieredctl's, without the options that say where things are."""

    about: str
    answer: str
    command: str

    def document(self) -> Document:
        return self._asdict()


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What is known of a store: its quarantine; its objects only where it was listed. Bytes as stored."""

    url: str
    quarantined: int
    quarantined_bytes: int
    objects: int | None = None
    bytes: int | None = None
    topics: int | None = None
    """By their ids, as far as the layout explains keys."""


@dataclass(frozen=True, slots=True)
class Status:
    """All that is known at a moment."""

    now_ms: int
    cluster: ClusterFacts | None = None
    """None where there is only a store."""
    store: StoreFacts | None = None
    results: LastResults = field(default_factory=LastResults)
    failed: dict[str, TieredctlError] = field(default_factory=dict)
    """Why the `cluster` or the `store` is not known, though it was asked."""
    asks_brokers: bool = True
    """Whether the cluster is, or would be, a live one: what is left of another has other commands."""

    def lines(self) -> Iterator[StatusLine]:
        """The screen, from top to bottom."""
        yield self._findings()
        yield from self._cluster()
        yield from self._store()
        yield self._orphans()
        yield self._verification()

    def summary(self) -> Document:
        """The status as numbers, None being unknown."""
        facts = self.cluster or ClusterFacts()
        scan, verification = self.results.scan, self.results.verification
        stuck, remote = facts.stuck, facts.tiered.remote_bytes
        return {
            "at": iso_8601(self.now_ms),
            "clusterId": facts.cluster_id,
            "release": facts.release,
            "brokers": facts.brokers,
            "tiered": _camel(asdict(facts.tiered) | {"remote_bytes": remote and remote.known}),
            "notTiered": facts.lag.offsets,
            "lagMs": None if facts.lag.since_ms is None else max(0, self.now_ms - facts.lag.since_ms),
            "mayBeMore": facts.may_be_more,
            "stuck": None if stuck is None else {"copies": stuck.copies, "deletions": stuck.deletions},
            "failingCopies": None if stuck is None else stuck.failing,
            "oldestStuckMs": None if stuck is None or stuck.oldest_ms is None else self.now_ms - stuck.oldest_ms,
            "store": None if self.store is None else _camel(asdict(self.store)),
            "lastScan": None if scan is None else _camel(asdict(scan)) | {"at": iso_8601(scan.at_ms)},
            "lastVerification": None if verification is None else _document_of(verification),
            "severities": self.severities(),
            "failed": {what: error.message for what, error in self.failed.items()},
        }

    def severities(self) -> dict[str, int] | None:
        """How many findings there are of each severity; None where nothing was looked at."""
        if self.cluster is None or self.cluster.findings is None:
            return None
        counts = Counter(finding.severity for finding in self.cluster.findings)
        return {severity.label: counts[severity] for severity in _SEVERITIES}

    def _findings(self) -> StatusLine:
        counts = self.severities()
        if counts is None:
            return StatusLine("findings", f"{UNKNOWN}: {self._why('cluster')}", self._deeper)
        counts_now = severities_text({one: counts[one.label] for one in _SEVERITIES})
        is_live = self.cluster is not None and self.cluster.is_live
        command = "doctor" if is_live else "metadata stuck"
        if grave := self.grave_of_last_verification():
            return StatusLine("findings", f"{counts_now or 'none'} now; {grave} in the last verification", command)
        return StatusLine("findings", counts_now or ("none" if is_live else "none in the metadata"), command)

    def grave_of_last_verification(self) -> str:
        """How many of its findings are critical or errors, in words: only another verification can say that they are
        gone. Empty where none are."""
        last = self.results.verification
        return severities_text({one: last.severities[one] for one in _GRAVE}) if last is not None else ""

    @property
    def _deeper(self) -> str:
        """What says more of a cluster of which nothing is known."""
        return "doctor" if self.asks_brokers else "metadata stats"

    def _why(self, what: str) -> str:
        error = self.failed.get(what)
        return f"no {what} was given" if error is None else error.message.rstrip(".")

    def _cluster(self) -> Iterator[StatusLine]:
        if self.cluster is None:
            if "cluster" in self.failed:
                yield StatusLine("cluster", f"{UNKNOWN}: {self._why('cluster')}", self._deeper)
            return
        facts = self.cluster
        named = [facts.cluster_id or UNKNOWN]
        named += [facts.release] if facts.release else []
        named += [counted(facts.brokers, "broker")] if facts.brokers else []
        live = facts.is_live
        yield StatusLine("cluster", ", ".join(named), "doctor" if live else "metadata stats")
        tiered, lag = facts.tiered, facts.lag
        amounts = ((tiered.topics, "topic"), (tiered.partitions, "partition"), (tiered.segments, "segment"))
        many = ", ".join(f"{UNKNOWN} {name}s" if number is None else counted(number, name) for number, name in amounts)
        topics = "topic list" if live else "metadata segments"
        least = self._least
        yield StatusLine("tiered", f"{least}{many}", topics)
        remote, local = self._remote(tiered.remote_bytes), _size(tiered.local_bytes)
        disks = "leaders' disks" if live else "disks"
        yield StatusLine("bytes", f"{remote} of logs tiered, {local} on {disks}", topics)
        dashes = "-- " if (lag.where or "").startswith("-") else ""
        yield StatusLine("lag", self._lag(), f"topic status {dashes}{quote(lag.where)}" if lag.where else topics)
        yield StatusLine("stuck", self._stuck(), "metadata stuck")

    def _remote(self, size: SizeSum | None) -> str:
        if size is None:
            return f"{self._least}{UNKNOWN}"
        return str(replace(size, is_exact=size.is_exact and not self._least))

    @property
    def _least(self) -> str:
        return "at least " if self.cluster is not None and self.cluster.may_be_more else ""

    def _lag(self) -> str:
        lag = (self.cluster or ClusterFacts()).lag
        if lag.offsets is None:
            return UNKNOWN
        if not lag.offsets:
            return "none: all of it is tiered"
        lag_text = f"{counted(lag.offsets, 'offset')} not tiered"
        return lag_text if lag.since_ms is None else f"{lag_text}, in {lag.where} for {self._for(lag.since_ms)}"

    def _stuck(self) -> str:
        stuck = (self.cluster or ClusterFacts()).stuck
        if stuck is None:
            return UNKNOWN
        failing = f"copies fail again and again in {counted(stuck.failing, 'partition')}" if stuck.failing else ""
        if stuck.oldest_ms is None:
            return failing or (f"none here; {UNKNOWN} elsewhere" if self._least else "none")
        kinds = ((stuck.copies, "copy", "copies"), (stuck.deletions, "deletion", "deletions"))
        stuck_text = " and ".join(counted(*kind) for kind in kinds if kind[0])
        stuck_text = f"{self._least}{stuck_text}, the oldest for {self._for(stuck.oldest_ms)}"
        return f"{stuck_text}; {failing}" if failing else stuck_text

    def _store(self) -> Iterator[StatusLine]:
        if self.store is None:
            if "store" in self.failed:
                yield StatusLine("store", f"{UNKNOWN}: {self._why('store')}", "remote du")
            return
        store = self.store
        if store.objects is not None and store.bytes is not None and store.topics is not None:
            what = f"{counted(store.objects, 'object')}, {size_text(store.bytes)}, of {counted(store.topics, 'topic')}"
            yield StatusLine("store", what, "remote du")
        kept = f"{counted(store.quarantined, 'object')}, {size_text(store.quarantined_bytes)}"
        yield StatusLine("quarantine", kept if store.quarantined else "empty", "orphans quarantine ls")

    def _orphans(self) -> StatusLine:
        scan = self.results.scan
        if scan is None:
            return StatusLine("orphans", f"{UNKNOWN}: {self._why_no_result(SCAN, 'scan')}", "orphans scan")
        of = "" if scan.objects is None else f" of {scan.objects}"
        size = "" if scan.orphan_bytes is None else f", {size_text(scan.orphan_bytes)}"
        doubt = _doubt(scan)
        unknown = f", {scan.unknown} {UNKNOWN}" if scan.unknown else ""
        orphans_text = f"{scan.orphans}{of} {'object' if scan.objects == 1 else 'objects'}{size}{unknown}"
        return StatusLine("orphans", f"{orphans_text}, {self._for(scan.at_ms)} ago{doubt}", "orphans scan")

    def _verification(self) -> StatusLine:
        last = self.results.verification
        if last is None:
            return StatusLine("verified", f"{UNKNOWN}: {self._why_no_result(VERIFY, 'verification')}", "verify")
        everything = last.read + last.skipped + last.not_looked_at
        share = "" if last.coverage is None else f" ({last.coverage:.0%})"
        level = f" at {last.level}" if last.level else ""
        doubt = _doubt(last)
        findings_text = severities_text(last.severities) or counted(last.findings, "finding")
        verified_text = f"{last.read} of {counted(everything, 'segment')}{share}{level}, {findings_text}"
        return StatusLine("verified", f"{verified_text}, {self._for(last.at_ms)} ago{doubt}", "verify")

    def _why_no_result(self, command: str, what: str) -> str:
        failed = self.results.failed.get(command)
        return f"no {what} was given (--result)" if failed is None else f"{failed} is of a {what} that failed"

    def _for(self, since_ms: int) -> str:
        return age_text(max(0, self.now_ms - since_ms))


def _doubt(result: LastScan | LastVerification) -> str:
    """What keeps a result from being that of everything."""
    only = "" if result.selection is None else f"; only {result.selection}"
    return f"{only}{'' if result.is_complete else '; it was incomplete'}"


def _document_of(last: LastVerification) -> Document:
    fields = asdict(last) | {"severities": {severity.label: count for severity, count in last.severities.items()}}
    del fields["kinds"]
    return _camel(fields) | {"at": iso_8601(last.at_ms), "coverage": last.coverage}


def _size(size: int | None) -> str:
    return UNKNOWN if size is None else size_text(size)


def _camel(fields: Document) -> Document:
    return {camel_case(name): value for name, value in fields.items()}
