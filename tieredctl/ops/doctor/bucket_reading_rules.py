"""Who can read a bucket's objects, and how fast."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.doctor.bucket_view import BucketView

_READS_OF_A_PARTITION = 5_500 / 1_200
"""Requests a second that one partition takes while it is read without a cache of chunks: measured with Aiven's plugin,
whose 1,200 partitions passed 5,500."""


def reading_findings(view: BucketView) -> Iterator[Finding]:
    """Findings about keys, public access, who pays, and the rate of requests."""
    yield from _keys(view)
    yield from _access(view)
    yield from _rate(view)


def _keys(view: BucketView) -> Iterator[Finding]:
    for key in view.facts.keys:
        if not key.is_usable:
            until = "" if key.deletion_date is None else f", deleted on {key.deletion_date}"
            message = f"{key.key} is {key.state}{until}: objects encrypted with it cannot be read"
            evidence: dict[str, object] = {"key": key.key, "state": key.state, "deletionDate": key.deletion_date}
            yield view.finding(FindingCode.STORE_KEY_UNUSABLE, message, evidence, key=key.key)
    unreadable = [one for one in view.facts.sample if one.unreadable]
    if unreadable:
        first = unreadable[0]
        message = f"{counted(len(unreadable), 'object')} cannot be read, such as {first.key}: {first.unreadable}"
        evidence = {"key": first.key, "objects": len(unreadable), "sampled": len(view.facts.sample)}
        yield view.finding(FindingCode.STORE_OBJECTS_UNREADABLE, message, evidence, name=view.root + first.key)


def _access(view: BucketView) -> Iterator[Finding]:
    facts = view.facts
    if facts.public_by is not None:
        message = f"everybody may read the bucket, by its own {facts.public_by}"
        is_unknown = facts.is_public_prevented is None
        if is_unknown:
            message += "; whether another setting prevents that is unknown"
        severity = Severity.WARNING if is_unknown else None
        yield view.finding(FindingCode.STORE_PUBLIC, message, {"by": facts.public_by}, severity)
    elif facts.is_public_prevented is False:
        message = "no setting of the bucket's own prevents that it becomes public"
        yield view.finding(FindingCode.STORE_PUBLIC_NOT_PREVENTED, message, {})
    if facts.has_object_acls:
        message = "objects may have access control lists of their own"
        yield view.finding(FindingCode.STORE_OBJECT_ACLS, message, {})
    if facts.requester_pays:
        message = "whoever asks pays: brokers of another account must consent with each request, or it fails"
        yield view.finding(FindingCode.STORE_REQUESTER_PAYS, message, {})


def _rate(view: BucketView) -> Iterator[Finding]:
    limit, topics = view.settings.reads_per_second, view.topics
    if limit is None or topics is None or topics.has_chunk_cache is not False:
        return
    expected = topics.partitions * _READS_OF_A_PARTITION
    if expected > limit:
        message = f"{counted(topics.partitions, 'tiered partition')} read at once take about {expected:.0f} requests "
        message += f"a second without a cache of chunks; the store answers {limit} for a prefix"
        evidence = {"partitions": topics.partitions, "readsPerSecond": round(expected), "limit": limit}
        yield view.finding(FindingCode.STORE_REQUEST_RATE, message, evidence)
