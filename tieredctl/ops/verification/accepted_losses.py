"""Lost objects of which somebody recorded in the store that nothing has their bytes: they need no alarm any more.

A record is sealed with the key that signs plans, since whoever may write to the store could hide a loss otherwise. It
is believed for exactly one object in exactly one condition: missing, or damaged in the version that it names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from tieredctl.errors import TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.guards.own_objects import ACCEPTED_FOLDER
from tieredctl.ops.guards.sealed_notes import read_notes, write_note
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore

_STORE, _LOSSES = "store", "losses"
_ABSENT = (FindingCode.OBJECT_MISSING, FindingCode.TRANSACTION_INDEX_MISSING)


class AcceptedLoss(NamedTuple):
    """One lost object. Time in ms since the epoch."""

    segment_id: str
    part: str
    key: str
    version: str | None
    """The store's word for the damaged bytes; None where the object is missing."""
    accepted_ms: int
    reason: str


class AcceptedLosses(Protocol):
    """What was recorded."""

    def of(self, segment_id: str, key: str) -> Sequence[AcceptedLoss]:
        """The records about one object."""
        ...


class NothingAccepted:
    """Where nobody recorded anything."""

    def of(self, _segment_id: str, _key: str) -> Sequence[AcceptedLoss]:
        return ()


class RecordedLosses:
    """The records of a store that this user's key sealed."""

    def __init__(self, losses: Iterable[AcceptedLoss]) -> None:
        self._losses: dict[tuple[str, str], list[AcceptedLoss]] = {}
        for one in losses:
            self._losses.setdefault((one.segment_id, one.key), []).append(one)

    def of(self, segment_id: str, key: str) -> Sequence[AcceptedLoss]:
        """The records about one object."""
        return self._losses.get((segment_id, key), ())


def record_losses(store: WritableObjectStore, key: bytes, losses: Sequence[AcceptedLoss]) -> None:
    """Raises TieredctlError as writing does."""
    document = {_STORE: store.url, _LOSSES: [one._asdict() for one in losses]}
    write_note(store, key, ACCEPTED_FOLDER, json.dumps(document).encode("ascii") + b"\n")


def read_accepted_losses(store: ObjectStore, key: bytes | None) -> AcceptedLosses:
    """What was recorded in a store, as far as it can be read and was not altered. Raises TieredctlError if the store
    does not answer."""
    notes = read_notes(store, key, ACCEPTED_FOLDER) if key is not None else ()
    return RecordedLosses(one for note in notes for one in _read(note.body, store.url))


def without_accepted(
    findings: Sequence[Finding], store: ObjectStore, read: Callable[[], AcceptedLosses]
) -> list[Finding]:
    """The findings, with those about losses that were accepted turned into what needs no attention, once for each
    object. Without an answer from the store, nothing is accepted."""
    if not any(_object_of(one) for one in findings):
        return list(findings)
    try:
        accepted = read()
    except TieredctlError:
        return list(findings)
    judged, known = list[Finding](), set[str]()
    for finding in findings:
        about = _object_of(finding)
        loss = about and accepted_now(store, accepted, *about, missing=finding.code in _ABSENT)
        if not loss:
            judged.append(finding)
        elif loss.key not in known:
            known.add(loss.key)
            judged.append(_as_accepted(finding, loss))
    return judged


def accepted_now(
    store: ObjectStore, accepted: AcceptedLosses, segment_id: str, key: str, *, missing: bool
) -> AcceptedLoss | None:
    """The record about an object in its condition; None where there is none, or the object cannot be looked at."""
    losses = accepted.of(segment_id, key)
    if not losses:
        return None
    try:
        stored = store.head(key)
    except TieredctlError:
        return None
    version = None if stored is None else stored.version
    if missing != (version is None):
        return None
    return next((one for one in losses if one.version == version), None)


def _object_of(finding: Finding) -> tuple[str, str] | None:
    """The segment and the key of the object that a finding calls lost."""
    about = finding.about
    if finding.severity <= Severity.INFO or finding.kind.incomplete or not isinstance(about, SegmentSubject):
        return None
    return (about.segment_id, about.key) if about.key is not None and about.part is not None else None


def _as_accepted(finding: Finding, loss: AcceptedLoss) -> Finding:
    message = f"{finding.message}; accepted as lost: {loss.reason}"
    evidence = {**finding.evidence, "acceptedMs": loss.accepted_ms, "wasCode": finding.code.value}
    return replace(finding, code=FindingCode.ACCEPTED_LOSS, message=message, evidence=evidence, severity_override=None)


def _read(body: bytes | None, store_url: str) -> Iterator[AcceptedLoss]:
    """A record's losses; none where it was altered, is of another release, or about another store."""
    if body is None:
        return
    try:
        document = json.loads(body)
        if document[_STORE] == store_url:
            yield from [AcceptedLoss(**one) for one in document[_LOSSES]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
