"""The rules of a Google Cloud Storage bucket's lifecycle, each of which is enabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tieredctl.ports.bucket_settings import LifecycleRule, Transition

_KEEPING = ("noncurrentTimeBefore", "numNewerVersions")
"""Such a rule keeps the only version of a segment that is deleted later."""
_OF_VERSIONS = ("daysSinceNoncurrentTime", *_KEEPING)
_NARROWING = ("createdBefore", "customTimeBefore", "daysSinceCustomTime", "matchesStorageClass", "matchesSuffix")


def lifecycle_rules(bucket: Mapping[str, Any]) -> list[LifecycleRule]:
    """Those of a bucket's description. They have no names: they are called by their place, from 1 on."""
    rules: Sequence[Mapping[str, Any]] = bucket.get("lifecycle", {}).get("rule", ())
    return [_rule(str(number), rule["action"], rule.get("condition", {})) for number, rule in enumerate(rules, 1)]


def _rule(name: str, action: Mapping[str, Any], condition: Mapping[str, Any]) -> LifecycleRule:
    kind, days = action["type"], condition.get("age", 0)
    of_versions = condition.get("isLive") is False or any(one in condition for one in _OF_VERSIONS)
    deletes = kind == "Delete"
    moves = kind == "SetStorageClass" and not of_versions
    # A rule of no version alone deletes noncurrent ones too, unless it says that it is of live objects.
    ends_versions = deletes and condition.get("isLive") is not True and not any(one in condition for one in _KEEPING)
    return LifecycleRule(
        name,
        condition.get("matchesPrefix") or ("",),
        [one for one in _NARROWING if one in condition],
        days if deletes and not of_versions else None,
        condition.get("daysSinceNoncurrentTime", days) if ends_versions else None,
        days if kind == "AbortIncompleteMultipartUpload" else None,
        [Transition(action["storageClass"], days)] if moves else (),
    )
