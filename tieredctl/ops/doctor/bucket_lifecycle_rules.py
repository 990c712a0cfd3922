"""A bucket's lifecycle and storage classes against what topics retain."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.quantities import size_text
from tieredctl.ops.doctor.bucket_view import BucketView
from tieredctl.ports.bucket_settings import ClassTerms, LifecycleRule

_UNLIMITED = float("inf")


def lifecycle_findings(view: BucketView) -> Iterator[Finding]:
    """Findings about rules that delete or move objects, and about the classes that objects are in."""
    for rule in view.facts.lifecycle or ():
        if view.touches(rule):
            yield from _expiry(view, rule)
            yield from _transitions(view, rule)
    yield from _archive_tiers(view)
    yield from _by_use(view)
    yield from _classes(view)


def _expiry(view: BucketView, rule: LifecycleRule) -> Iterator[Finding]:
    days = rule.expires_days
    if days is None or _outlived(view, days):
        return
    message = f"rule {rule.name!r} deletes objects after {days:g} days, {_retained(view)}"
    severity = None if _is_known(view, rule) else Severity.WARNING
    yield view.finding(FindingCode.STORE_LIFECYCLE_EXPIRES, message, _evidence(view, rule, days), severity)


def _transitions(view: BucketView, rule: LifecycleRule) -> Iterator[Finding]:
    for storage_class, days in rule.transitions:
        terms = view.settings.classes.get(storage_class, ClassTerms())
        if _outlived(view, days):
            continue
        evidence = {**_evidence(view, rule, days), "storageClass": storage_class}
        moved = f"rule {rule.name!r} moves objects to {storage_class} after {days:g} days"
        if terms.needs_restoring:
            message = f"{moved}, {_retained(view)}: brokers cannot read them there"
            severity = None if _is_known(view, rule) else Severity.WARNING
            yield view.finding(FindingCode.STORE_LIFECYCLE_ARCHIVES, message, evidence, severity)
        else:
            yield from _minimum(view, storage_class, terms, moved, evidence, days)


def _minimum(
    view: BucketView, storage_class: str, terms: ClassTerms, moved: str, evidence: dict[str, object], days: float
) -> Iterator[Finding]:
    retained = view.retention_days
    if retained is None or retained == _UNLIMITED or retained - days >= terms.minimum_days:
        return
    left = retained - days
    message = f"{moved}, and topics keep them {left:.1f} days longer: {terms.minimum_days} days are paid for"
    evidence = {**evidence, "storageClass": storage_class, "minimumDays": terms.minimum_days}
    if view.price is not None:
        listed = {name: counts.bytes for name, counts in view.contents.by_class.items()}
        paid = view.price.monthly_cost_of({storage_class: sum(listed.values())}) * (terms.minimum_days - left) / 30
        evidence |= {"costOfUnusedDays": round(paid, 2), "currency": view.price.currency}
    yield view.finding(FindingCode.STORE_CLASS_MINIMUM_DAYS, message, evidence)


def _archive_tiers(view: BucketView) -> Iterator[Finding]:
    there = view.contents.by_class.get(view.facts.archived_class)
    objects = None if view.contents.objects is None else 0 if there is None else there.entries
    for rule in filter(view.touches, view.facts.archive_tiers):
        # What is not there now may still come: a rule or a plugin chooses the class.
        severity = Severity.WARNING if not objects or rule.narrowed_by else None
        for tier, days in rule.transitions:
            if _outlived(view, days):
                continue
            message = f"objects of {view.facts.archived_class} that nobody reads for {days:g} days go to {tier}, by "
            message += f"configuration {rule.name!r}: brokers cannot read them there"
            evidence = {"configuration": rule.name, "prefixes": list(rule.prefixes), "tier": tier, "days": days}
            evidence |= {"narrowedBy": list(rule.narrowed_by), "objects": objects}
            yield view.finding(FindingCode.STORE_ARCHIVE_TIERS, message, evidence, severity)


def _by_use(view: BucketView) -> Iterator[Finding]:
    coldest = view.facts.moves_by_use
    if coldest is not None:
        message = f"the store moves objects that nobody reads to classes as cold as {coldest}"
        yield view.finding(FindingCode.STORE_CLASS_BY_USE, message, {"storageClass": coldest})


def _classes(view: BucketView) -> Iterator[Finding]:
    some = view.contents.at_least("objects")
    for name, counts in view.contents.by_class.items():
        if view.settings.classes.get(name, ClassTerms()).needs_restoring:
            message = f"{some}{counted(counts.entries, 'object')} ({size_text(counts.bytes)}) are in {name}"
            evidence = {"storageClass": name, "objects": counts.entries, "bytes": counts.bytes, "key": counts.example}
            yield view.finding(FindingCode.STORE_OBJECTS_ARCHIVED, message, evidence, name=view.root + counts.example)
    for name, counts in view.contents.small.items():
        least = view.settings.classes[name].minimum_bytes
        paid = counts.entries * least
        message = f"{some}{counted(counts.entries, 'object')} in {name} hold {size_text(counts.bytes)} and are paid as "
        message += size_text(paid)
        evidence = {"storageClass": name, "objects": counts.entries, "bytes": counts.bytes, "paidBytes": paid}
        yield view.finding(
            *(FindingCode.STORE_CLASS_SMALL_OBJECTS, message),
            {**evidence, **view.cost({name: paid - counts.bytes})},
            storageClass=name,
        )
    default = view.facts.default_class
    terms = view.settings.classes.get(default or "", ClassTerms())
    if default is not None and terms.minimum_days:
        moved, evidence = f"new objects go to {default}", {"storageClass": default, "days": 0}
        yield from _minimum(view, default, terms, moved, {**evidence, "retentionDays": _shown(view)}, 0)


def _outlived(view: BucketView, days: float) -> bool:
    """Whether all topics have deleted an object of that age. Kafka deletes a segment once its newest record is too old,
    and its objects are no older than that record was copied."""
    return view.retention_days is not None and days > view.retention_days


def _is_known(view: BucketView, rule: LifecycleRule) -> bool:
    """Whether the rule is known to be for objects that are still retained."""
    return view.retention_days is not None and not rule.narrowed_by


def _retained(view: BucketView) -> str:
    days = view.retention_days
    if view.topics is None or days is None:
        return "and how long topics retain theirs is unknown"
    return f"and topic {view.topics.longest} retains them {'forever' if days == _UNLIMITED else f'{days:g} days'}"


def _shown(view: BucketView) -> float | str | None:
    return "unlimited" if view.retention_days == _UNLIMITED else view.retention_days


def _evidence(view: BucketView, rule: LifecycleRule, days: float) -> dict[str, object]:
    return {
        "rule": rule.name,
        "prefixes": list(rule.prefixes),
        "narrowedBy": list(rule.narrowed_by),
        "days": days,
        "topic": None if view.topics is None else view.topics.longest,
        "retentionDays": _shown(view),
    }
