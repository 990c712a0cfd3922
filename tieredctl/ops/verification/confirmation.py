"""A cluster keeps changing while it is verified: findings are only believed if their segment is still as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject, StoreSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def confirmed(findings: Iterable[Finding], before: ReplayedMetadata, after: ReplayedMetadata) -> list[Finding]:
    """The findings whose segments are in the same state in metadata read afterwards.

    A segment that retention removed meanwhile is not missing; an object whose copy began meanwhile is not unreferenced.
    """
    every = list(findings)
    named = {one for finding in every for one in finding.about.segment_ids}
    then, now = _states(before, named), _states(after, named)
    return [finding for finding in every if all(then.get(one) == now.get(one) for one in finding.about.segment_ids)]


def still_there(findings: Sequence[Finding], store: ObjectStore) -> list[Finding]:
    """The findings, except those of unreferenced objects that no longer exist: they were listed while a
    broker was deleting them. Each is asked for by name, as far as its key says whose it is; what a store that does not
    answer leaves open is counted."""
    unanswered: list[TieredctlError] = []

    def is_gone_now(key: str) -> bool | None:
        """None where the store stopped answering."""
        if unanswered:
            return None
        try:
            return store.head(key) is None
        except TieredctlError as error:
            if error.code not in CONCERN_EVERY_OBJECT:
                return False
            unanswered.append(error)
            return None

    keys = (_explained_key(one) for one in findings)
    asked = [key for key in keys if key is not None]
    answers = dict(zip(asked, in_parallel(store, is_gone_now, asked), strict=True))
    left_out = {key for key, is_gone in answers.items() if is_gone is not False}
    there = [one for one in findings if _explained_key(one) not in left_out]
    unknown = sum(is_gone is None for is_gone in answers.values())
    return [*there, _not_known(unknown, store.url, unanswered[0])] if unknown else there


def _not_known(objects: int, url: str, error: TieredctlError) -> Finding:
    what = counted(objects, "object that no segment explains is", "objects that no segment explains are")
    message = f"it is unknown whether {what} still there: {error.message}"
    evidence = {"store": url, "error": error.code.value}
    return Finding(FindingCode.UNREADABLE, url, message, evidence, about=StoreSubject())


def _explained_key(finding: Finding) -> str | None:
    """The key of an unreferenced object that says whose it is."""
    if finding.code is FindingCode.OBJECT_UNREFERENCED and isinstance(finding.about, SegmentSubject):
        return finding.about.key
    return None


def _states(metadata: ReplayedMetadata, segment_ids: Iterable[str]) -> dict[str, RemoteLogSegmentState]:
    """Of some segments, those that are known."""
    rows = metadata.named(segment_ids)
    return {known.metadata.segment_id: known.metadata.state for _, known in metadata.known(rows)}
