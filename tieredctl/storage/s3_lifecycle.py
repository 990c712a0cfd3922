"""The enabled rules of an S3 bucket's lifecycle, and of S3 Intelligent-Tiering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tieredctl.ports.bucket_settings import LifecycleRule, Transition

_NARROWING = ("Tag", "Tags", "ObjectSizeGreaterThan", "ObjectSizeLessThan")


def lifecycle_rules(answer: Mapping[str, Any]) -> list[LifecycleRule]:
    """What GetBucketLifecycleConfiguration answered; empty where there is no lifecycle."""
    return [_rule(rule) for rule in answer.get("Rules", ()) if rule.get("Status") == "Enabled"]


def archive_rules(configurations: Iterable[Mapping[str, Any]]) -> list[LifecycleRule]:
    """Those of a list of S3 Intelligent-Tiering configurations."""
    return [_archive_rule(one) for one in configurations if one.get("Status") == "Enabled"]


def _archive_rule(configuration: Mapping[str, Any]) -> LifecycleRule:
    moves = [Transition(tier["AccessTier"], tier["Days"]) for tier in configuration.get("Tierings", ())]
    return LifecycleRule(configuration["Id"], *_chosen(configuration), transitions=moves)


def _chosen(rule: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """The prefix of what a rule is for, and the names of its other conditions."""
    chosen = rule.get("Filter", {})
    both = chosen.get("And", {})
    prefix = chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or ""
    return (prefix,), [name for name in _NARROWING if name in chosen or name in both]


def _rule(rule: Mapping[str, Any]) -> LifecycleRule:
    return LifecycleRule(
        rule.get("ID", ""),
        *_chosen(rule),
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
