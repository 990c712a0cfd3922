"""What commands know, as plots of their pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, TypeVar

from tieredctl.model.counted import counted
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ownership import OrphanCause
from tieredctl.model.quantities import size_text
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ports.layout import Part

if TYPE_CHECKING:
    from tieredctl.ops.status.facts import TopicBytes, Uploads
    from tieredctl.ops.status.last_results import LastScan, LastVerification
    from tieredctl.report.plot import Plot

_Thing = TypeVar("_Thing")
_UNEXPLAINED = "(keys that the layout does not explain)"
_SEVERITIES = (Severity.CRITICAL, Severity.ERROR, Severity.WARNING, Severity.INFO)


def coverage_plot(summary: Mapping[str, Any], findings: Sequence[Finding]) -> Plot:
    """The coverage of a verification: in how many segments something is lost or altered, could not be read, or was not
    looked at and why."""
    from tieredctl.report.plot import CRITICAL, GOOD, SERIES, UNKNOWN, WARNING
    from tieredctl.report.shares import Share, shares

    wrong = _segments_of(one for one in findings if one.is_corruption)
    unread = _segments_of(one for one in findings if one.makes_incomplete) - wrong
    sound = max(0, summary["segments"] - len(wrong) - len(unread))
    parts = [
        Share("nothing wrong, as far as read", sound, GOOD),
        Share("something lost or altered", len(wrong), CRITICAL),
        Share("could not be read", len(unread), WARNING),
        Share("outside --subset", summary.get("outsideSubset", 0), SERIES[5]),
        Share("unfinished, removed, or of a deleted topic", summary["skipped"], SERIES[3]),
        Share("not looked at: the store stopped answering", summary["notLookedAt"], UNKNOWN),
    ]
    description = f"Of all segments that were meant, at level {summary['level']}."
    return shares("coverage", "Coverage of this verification", description, parts, "Segments")


def _segments_of(findings: Iterable[Finding]) -> set[str]:
    subjects = (one.about for one in findings)
    return {one.segment_id for one in subjects if isinstance(one, SegmentSubject) and one.segment_id}


def last_verification_plot(last: LastVerification) -> Plot:
    """The coverage of an earlier verification, by its result."""
    from tieredctl.report.plot import GOOD, SERIES, UNKNOWN
    from tieredctl.report.shares import Share, shares

    parts = [
        Share("looked at", last.read, GOOD),
        Share("outside --subset, unfinished, or gone", last.skipped, SERIES[5]),
        Share("not looked at: the store stopped answering", last.not_looked_at, UNKNOWN),
    ]
    level = f" at level {last.level}" if last.level else ""
    description = f"{_moment(last.at_ms)}{level}, {counted(last.findings, 'finding')}.{_only(last.selection)}"
    return shares("coverage", "Coverage of the last verification", description, parts, "Segments")


def verifications_plot(verifications: Sequence[LastVerification]) -> Plot | None:
    """How much each of several verifications looked at; None where there are no several."""
    from tieredctl.report.bars import MOST_BARS, Series, bars
    from tieredctl.report.plot import GOOD, SERIES, UNKNOWN

    if len(verifications) < 2:
        return None
    shown = verifications[-MOST_BARS:]
    series = [
        Series("looked at", GOOD, [one.read for one in shown]),
        Series("left out", SERIES[5], [one.skipped for one in shown]),
        Series("unanswered", UNKNOWN, [one.not_looked_at for one in shown]),
    ]
    names = [f"{_moment(one.at_ms)[:16]}, {_coverage(one)}{counted(one.findings, 'finding')}" for one in shown]
    cut = f" The last {len(shown)} of {len(verifications)}." if len(shown) < len(verifications) else ""
    return bars("verifications", "Coverage of verifications", f"Segments, by --result.{cut}", names, series)


def _coverage(one: LastVerification) -> str:
    return "" if one.coverage is None else f"{one.coverage:.0%}, "


def last_scan_plot(last: LastScan) -> Plot | None:
    """How much of a store an earlier scan found to be orphaned; None where it did not say of how much."""
    from tieredctl.report.plot import GOOD, UNKNOWN, WARNING
    from tieredctl.report.shares import Share, shares

    if last.objects is None:
        return None
    others = max(0, last.objects - last.orphans - (last.unknown or 0))
    parts = [Share("not orphaned", others, GOOD), Share("orphaned", last.orphans, WARNING)]
    parts += [Share("unknown", last.unknown, UNKNOWN)] if last.unknown else []
    doubt = "" if last.is_complete else " It was incomplete: there may be more."
    description = f"{_moment(last.at_ms)}.{_only(last.selection)}{doubt}"
    return shares("last-scan", "Orphans of the last scan", description, parts, "Objects")


def _only(selection: str | None) -> str:
    return "" if selection is None else f" Only {selection}."


def topics_plot(topics: Sequence[TopicBytes], *, may_be_more: bool) -> Plot | None:
    """The topics that have the most in remote storage, by the metadata."""
    from tieredctl.report.bars import Series, bars
    from tieredctl.report.plot import SERIES

    if not topics:
        return None
    names, groups = _few([one.topic for one in topics], topics, "other topic")
    amounts = [sum(one.remote_size.least for one in group) for group in groups]
    least = " At least: more metadata may exist than was read." if may_be_more else ""
    unknown = [one.topic for one in topics if not one.remote_size.is_exact]
    least += f" At least, of {', '.join(unknown)}: the size of a segment is unknown." if unknown else ""
    description = f"By the metadata, before any compression.{least}"
    series = [Series("Bytes", SERIES[0], amounts)]
    return bars("tiered-bytes", "Bytes in remote storage by topic", description, names, series, size_text)


def usage_plot(rows: Sequence[Mapping[str, Any]]) -> Plot | None:
    """The topics that have the most in a store, by `remote du`; logs and the rest, where rows tell them apart."""
    from tieredctl.report.bars import Series, bars
    from tieredctl.report.plot import SERIES

    sizes, topics, has_parts = Counter[tuple[str, str]](), Counter[str](), any(row["part"] for row in rows)
    for row in rows:
        topic = row["topic"] or _UNEXPLAINED
        kind = "Bytes" if not has_parts else "logs" if row["part"] == Part.LOG else "indexes and the rest"
        sizes[topic, kind] += row["bytes"]
        topics[topic] += row["bytes"]
    ranked = sorted(topics, key=lambda topic: (-topics[topic], topic))
    if not ranked:
        return None
    names, groups = _few(ranked, ranked, "other topic")
    kinds = ("logs", "indexes and the rest") if has_parts else ("Bytes",)
    series = [
        Series(kind, colour, [sum(sizes[topic, kind] for topic in group) for group in groups])
        for kind, colour in zip(kinds, SERIES, strict=False)
    ]
    return bars("stored-bytes", "Bytes in the store by topic", "As stored.", names, series, size_text)


def ages_plot(sizes: Mapping[tuple[str, str], int]) -> Plot | None:
    """How old orphans are, by cause: `sizes` has bytes by age and cause."""
    from tieredctl.cli.pages.orphan_rows import AGES, UNKNOWN_AGE
    from tieredctl.report.bars import Series, bars
    from tieredctl.report.plot import SERIES

    ages = [age for age in (*(name for _, name in AGES), UNKNOWN_AGE) if any(one == age for one, _ in sizes)]
    if not ages:
        return None
    series = [
        Series(cause.value, colour, [sizes.get((age, cause.value), 0) for age in ages])
        for cause, colour in zip(OrphanCause, cycle(SERIES))
        if any(one == cause.value for _, one in sizes)
    ]
    return bars(
        "orphans-by-age", "Orphaned bytes by age and cause", "Age at the time of the scan.", ages, series, size_text
    )


def uploads_plot(uploads: Uploads) -> Plot | None:
    """How long segments took into remote storage."""
    from tieredctl.report.delays import delays

    description = (
        "From a segment's newest record until its copy was finished, by when that was. "
        "Of segments that are in remote storage now; producers may set records' times."
    )
    columns = uploads.finished_ms, uploads.waited_ms
    return delays("upload-delay", "Upload delay over time", description, *columns, "Segments")


def _few(names: Sequence[str], things: Sequence[_Thing], others: str) -> tuple[list[str], list[Sequence[_Thing]]]:
    """The first few names, each with its thing, and the others together."""
    from tieredctl.report.bars import MOST_BARS

    shown = MOST_BARS if len(names) <= MOST_BARS else MOST_BARS - 1
    groups: list[Sequence[_Thing]] = [[thing] for thing in things[:shown]]
    if len(names) <= shown:
        return list(names), groups
    return [*names[:shown], counted(len(names) - shown, others)], [*groups, things[shown:]]


def _moment(at_ms: int) -> str:
    return f"{(iso_8601(at_ms) or 'at an unknown time')[:19].replace('T', ' ')} UTC"


def findings_plot(findings: Sequence[Finding]) -> Plot | None:
    """Where what is wrong is: findings by topic and severity. None where none names a topic."""
    from tieredctl.report.bars import Series, bars
    from tieredctl.report.plot import CRITICAL, ERROR, SERIES, WARNING

    counts = Counter[tuple[str, Severity]]()
    topics = Counter[str]()
    for one in findings:
        if isinstance(one.about, PartitionSubject):
            topic = one.about.partition.topic
            counts[topic, one.severity] += 1
            topics[topic] += 1
    if not topics:
        return None
    ranked = [topic for topic, _ in topics.most_common()]
    names, groups = _few(ranked, ranked, "other topic")
    colours = dict(zip(_SEVERITIES, (CRITICAL, ERROR, WARNING, SERIES[0]), strict=True))
    series = []
    for severity in _SEVERITIES:
        amounts = [sum(counts[topic, severity] for topic in group) for group in groups]
        if any(amounts):
            series.append(Series(severity.label, colours[severity], amounts))
    elsewhere = len(findings) - topics.total()
    description = "Those that name a partition" + (
        f"; {counted(elsewhere, 'other names', 'others name')} none." if elsewhere else "."
    )
    return bars("findings-by-topic", "Findings by topic", description, names, series)
