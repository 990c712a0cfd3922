"""Two sources that move are read again before a finding is made of them: the first after the second.

Leaders copy, trim, delete and hand over while a command reads, so metadata that was read a minute before a leader was
asked contradicts it on any healthy cluster. A second look begins with the first source again; what it does not find as
well was movement. `docs/safety.md` lists the pairs, and `moving` in the table of findings marks what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import Offsets, PartitionSubject
from tieredctl.model.findings import Finding, Severity

_GAPS = (FindingCode.OFFSET_GAP, FindingCode.LOCAL_REMOTE_GAP)
"""Which of the two a hole is depends on how far the copies around it are."""
_Seen = TypeVar("_Seen")


def look_twice(
    look: Callable[[], _Seen],
    findings_of: Callable[[_Seen], Sequence[Finding]],
    *,
    besides: Callable[[_Seen], bool] = lambda _seen: False,
) -> tuple[_Seen, list[Finding]]:
    """What was seen last, and what was found in it. `look` reads everything from the first source on; it is called
    again only where a finding is in doubt, or `besides` doubts what was seen for another reason."""
    reading = look()
    findings = list(findings_of(reading))
    if not (are_in_doubt(findings) or besides(reading)):
        return reading, findings
    reading = look()
    return reading, confirmed(findings, findings_of(reading))


def are_in_doubt(findings: Iterable[Finding]) -> bool:
    """Whether any of them has to be looked at again before it is reported."""
    return any(map(_is_in_doubt, findings))


def confirmed(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """The findings of the second look, without what only one of the two looks found where that may be movement. Of
    missing offsets, those that both looks missed."""
    before: dict[tuple[str, str], list[Finding]] = {}
    for one in first:
        before.setdefault(_key(one), []).append(one)
    return list(_confirmed(before, second))


def _confirmed(before: Mapping[tuple[str, str], Sequence[Finding]], second: Iterable[Finding]) -> Iterator[Finding]:
    for one in second:
        earlier = before.get(_key(one), ())
        if not _is_in_doubt(one):
            yield one
        elif one.code in _GAPS:
            yield from (narrowed for other in earlier if (narrowed := _narrowed(one, other)) is not None)
        elif any(_are_of_same_segments(one, other) for other in earlier):
            yield one


def _is_in_doubt(finding: Finding) -> bool:
    return finding.kind.moving and finding.severity is not Severity.INFO


def _key(finding: Finding) -> tuple[str, str]:
    return ("gap" if finding.code in _GAPS else finding.code.value, finding.subject)


def _are_of_same_segments(one: Finding, other: Finding) -> bool:
    """Whether they share a segment; those about none are the same by their subjects."""
    ids, others = set(one.about.segment_ids), set(other.about.segment_ids)
    return not ids or not others or not ids.isdisjoint(others)


def _narrowed(one: Finding, other: Finding) -> Finding | None:
    """A gap as far as the other has it, too; None where they have no offset in common."""
    mine, its = _offsets(one), _offsets(other)
    if mine is None or its is None:
        return one
    common = max(mine[0], its[0]), min(mine[1], its[1])
    if common[0] > common[1]:
        return None
    message = one.message.replace(_text(mine), _text(common), 1)
    evidence = {**one.evidence, "offsets": list(common)}
    about = replace(one.about, offsets=common) if isinstance(one.about, PartitionSubject) else one.about
    return replace(one, message=message, evidence=evidence, about=about)


def _offsets(finding: Finding) -> Offsets | None:
    return finding.about.offsets if isinstance(finding.about, PartitionSubject) else None


def _text(offsets: Offsets) -> str:
    return f"offsets {offsets[0]} to {offsets[1]}"
