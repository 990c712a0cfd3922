"""The enabled rules of an S3 bucket's lifecycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tieredctl.ports.bucket_settings import LifecycleRule, Transition

_NARROWING = ("Tag", "Tags", "ObjectSizeGreaterThan", "ObjectSizeLessThan")


def lifecycle_rules(answer: Mapping[str, Any]) -> list[LifecycleRule]:
    """What GetBucketLifecycleConfiguration answered; empty where there is no lifecycle."""
    return [_rule(rule) for rule in answer.get("Rules", ()) if rule.get("Status") == "Enabled"]


def _rule(rule: Mapping[str, Any]) -> LifecycleRule:
    chosen = rule.get("Filter", {})
    both = chosen.get("And", {})
    return LifecycleRule(
        rule.get("ID", ""),
        (chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or "",),
        [name for name in _NARROWING if name in chosen or name in both],
        _expiry(rule.get("Expiration", {})),
        _noncurrent_days(rule.get("NoncurrentVersionExpiration", {})),
        rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation"),
        list(_transitions(rule)),
    )


def _expiry(expiration: Mapping[str, Any]) -> float | None:
    """`ExpiredObjectDeleteMarker` alone deletes no object."""
    return 0 if "Date" in expiration else expiration.get("Days")


def _noncurrent_days(expiration: Mapping[str, Any]) -> float | None:
    """A rule that keeps some versions keeps the only one of a deleted segment, which was written once."""
    return None if "NewerNoncurrentVersions" in expiration else expiration.get("NoncurrentDays")


def _transitions(rule: Mapping[str, Any]) -> Iterator[Transition]:
    for one in rule.get("Transitions", ()):
        yield Transition(one["StorageClass"], 0 if "Date" in one else one.get("Days", 0))
