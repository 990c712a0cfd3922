"""What keeps deleted objects in a bucket, or objects from being deleted."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.quantities import size_text
from tieredctl.ops.doctor.bucket_contents import Uploads
from tieredctl.ops.doctor.bucket_view import DAY_MS, BucketView
from tieredctl.ports.bucket_settings import SampledObject
from tieredctl.ports.object_store import Versioning

_LONGEST_YEAR = 366 / 365
"""Providers' years have leap days; `DefaultRetention.days` has not."""


def keeping_findings(view: BucketView) -> Iterator[Finding]:
    """Findings about versions, soft delete, retention, holds, and unfinished uploads."""
    yield from _versions(view)
    yield from _soft_delete(view)
    yield from _retention(view)
    yield from _holds(view)
    yield from _uploads(view)
    yield from _replication(view)


def _versions(view: BucketView) -> Iterator[Finding]:
    versions, rules = view.contents.versions, view.facts.lifecycle
    if any(rule.noncurrent_days is not None and view.covers(rule) for rule in rules or ()):
        return
    there = versions is not None and bool(versions.entries)
    if not there and (rules is None or view.facts.versioning is not Versioning.ENABLED):
        return
    evidence: dict[str, object] = {"versioning": view.facts.versioning.value}
    held = "how many versions there are is unknown"
    if versions is not None:
        evidence |= {
            "noncurrentVersions": versions.entries,
            "noncurrentBytes": versions.bytes,
            "deleteMarkers": view.contents.delete_markers,
            **view.cost(versions.class_bytes),
        }
        held = f"{view.contents.at_least('versions')}{counted(versions.entries, 'noncurrent version')} "
        held += f"({size_text(versions.bytes)}) are paid for now"
    rule = "no rule deletes noncurrent versions" if rules is not None else "whether a rule deletes them is unknown"
    message = f"versioning is {view.facts.versioning.value} and {rule}: deletions free nothing; {held}"
    yield view.finding(FindingCode.STORE_VERSIONS_KEPT, message, evidence)


def _soft_delete(view: BucketView) -> Iterator[Finding]:
    days = view.facts.soft_delete_days
    if days:
        message = f"deleted objects are kept for {days:g} days, and paid for"
        yield view.finding(FindingCode.STORE_SOFT_DELETE, message, {"softDeleteDays": days})


def _retention(view: BucketView) -> Iterator[Finding]:
    rule = view.facts.retention
    if rule is not None:
        what = "deletions are refused" if rule.keeps_the_key else "deleted objects stay as versions, which are paid for"
        message = f"new objects are retained for {rule.days:g} days ({rule.mode}): until then {what}"
        evidence = {"days": rule.days, "mode": rule.mode, "retentionDays": _days(view)}
        severity = Severity.ERROR if rule.keeps_the_key else None
        yield view.finding(FindingCode.STORE_RETENTION_DEFAULT, message, evidence, severity)
    elif view.facts.holds_new_objects:
        mode = view.facts.holds_new_objects
        message = f"every new object is held ({mode}): deletions are refused"
        yield view.finding(FindingCode.STORE_RETENTION_DEFAULT, message, {"mode": mode}, Severity.ERROR)


def _days(view: BucketView) -> float | None:
    days = view.retention_days
    return None if days is None or days == float("inf") else round(days, 2)


def _holds(view: BucketView) -> Iterator[Finding]:
    made_ms = {one.key: one.last_modified_ms for one in view.contents.sample}
    held = [one for one in view.facts.sample if one.held_by and not _by_default(view, one, made_ms[one.key])]
    if not held or view.facts.holds_new_objects:
        return
    first = held[0]
    asked = counted(len(view.facts.sample), "object")
    message = f"{len(held)} of {asked} that were asked about cannot be deleted, such as {first.key} ({first.held_by})"
    evidence = {"objects": len(held), "sampled": len(view.facts.sample), "key": first.key, "hold": first.held_by}
    yield view.finding(FindingCode.STORE_OBJECTS_HELD, message, evidence, name=view.root + first.key)


def _by_default(view: BucketView, one: SampledObject, made_ms: int) -> bool:
    """Whether the default retention explains what holds an object: it is said of the bucket."""
    default, until_ms = view.facts.retention, one.retained_until_ms
    if default is None or until_ms is None:
        return False
    return until_ms <= made_ms + (default.days * _LONGEST_YEAR + 1) * DAY_MS


def _uploads(view: BucketView) -> Iterator[Finding]:
    rules, uploads = view.facts.lifecycle, view.contents.uploads
    if view.facts.uploads_end_themselves:
        return
    covering = [rule.abort_days for rule in rules or () if rule.abort_days is not None and view.covers(rule)]
    evidence: dict[str, object] = {}
    held = "whether there are any is unknown"
    if uploads is not None:
        paid = None if uploads.bytes is None else {"": uploads.bytes}
        evidence = {"uploads": uploads.entries, "bytes": uploads.bytes, **view.cost(paid)}
        held = f"there are {view.contents.at_least('uploads')}{uploads.entries} now ({_size(uploads)})"
    if rules is not None and not covering:
        message = f"no rule aborts multipart uploads that were never completed; {held}"
        yield view.finding(FindingCode.STORE_UPLOADS_NEVER_ABORTED, message, evidence)
        return
    # A rule acts at the end of its day; a copy that is under way is no leftover.
    allowed_days = min(covering, default=0) + 1
    oldest = None if uploads is None else uploads.oldest_ms
    if oldest is not None and uploads is not None and view.now_ms - oldest > allowed_days * DAY_MS:
        age_days = (view.now_ms - oldest) / DAY_MS
        message = f"{view.contents.at_least('uploads')}{counted(uploads.entries, 'upload')} never completed "
        message += f"({_size(uploads)}), the oldest {age_days:.0f} days old"
        yield view.finding(
            FindingCode.STORE_UPLOADS_INCOMPLETE, message, {**evidence, "oldestDays": round(age_days, 1)}
        )


def _size(uploads: Uploads) -> str:
    return "of unknown size" if uploads.bytes is None else size_text(uploads.bytes)


def _replication(view: BucketView) -> Iterator[Finding]:
    rules = view.facts.replication
    if not rules:
        return
    copying = [one for one in rules if one.is_enabled and view.root.startswith(one.prefix) and not one.is_narrowed]
    names = [one.name for one in rules]
    if not copying:
        message = "no enabled replication rule is for all objects of this prefix"
        yield view.finding(FindingCode.STORE_REPLICATION_INCOMPLETE, message, {"rules": names})
        return
    missing = [one for one in view.facts.sample if one.replication in ("", "FAILED")]
    if missing:
        message = f"{len(missing)} of {counted(len(view.facts.sample), 'object')} that were asked about were not "
        message += f"replicated, such as {missing[0].key}: objects from before the rule are not copied"
        evidence = {"rules": names, "objects": len(missing), "sampled": len(view.facts.sample), "key": missing[0].key}
        yield view.finding(FindingCode.STORE_REPLICATION_INCOMPLETE, message, evidence)
    if not any(one.copies_deletions for one in copying):
        message = "delete markers are not replicated: what is deleted here stays in the other bucket"
        yield view.finding(FindingCode.STORE_REPLICATION_KEEPS_DELETED, message, {"rules": names})
