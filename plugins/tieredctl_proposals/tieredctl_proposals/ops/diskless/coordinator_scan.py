"""The search for orphaned files of KIP-1164, by the logs of all diskless coordinators.

The bucket is listed first, and the logs are read afterwards: what was committed by then is in them. An object is
orphaned if it is older than the threshold, and no coordinator knows it. The threshold lies before the oldest file that
is live at any coordinator by the grace period: the proposal adds the grace period instead, which would put the
threshold after files that are being uploaded right now. How old that file is, both the coordinators and the store say,
and the earlier time counts: a coordinator whose clock is ahead makes nothing look old. What the store had before a
coordinator's log begins is unknown: `__diskless_metadata` may have been created again, or a disk came back empty, and
the log that was lost may have had it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from tieredctl_inkless.diskless.control_plane import KEYS_AT_ONCE, FileState, FoundStates
from tieredctl_inkless.ops.diskless.bucket import demand_listing
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.judgement import VERDICTS, JudgedBatch, Rule, first_that_fits
from tieredctl_inkless.ops.diskless.orphans import Judged, JudgedScan

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.orphans.object_columns import NEVER_MS
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.remote.listing import Listing
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.ops.diskless.coordinator_files import UNKNOWN_MS, CoordinatorFiles, read_files
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs

_ASKED_BY_NAME = 16
"""How many live files are asked for before a bucket is called another one's: a listing may be older than they."""


class CoordinatorJudge:
    """Decides about objects, by the logs of all coordinators."""

    by_standby = False

    def __init__(self, files: CoordinatorFiles, oldest_ms: int, grace_ms: int, *, is_complete: bool) -> None:
        """`oldest_ms` is when the oldest live file was committed or uploaded, at the latest; UNKNOWN_MS where nothing
        tells it."""
        self.files = files
        self.oldest_ms = oldest_ms
        self._is_complete = is_complete and oldest_ms != UNKNOWN_MS
        self.threshold_ms = oldest_ms - grace_ms
        """Objects that were modified at this time or after it may be waiting for their commit; ms since the epoch."""

    def judged(self, objects: pa.RecordBatch) -> JudgedBatch:
        """Objects by LISTING_SCHEMA, none of whose keys is null."""
        keys, modified_ms = objects.column("key"), numbers_in(objects.column("lastModifiedMs")).astype(np.int64)
        numbers = self.files.keys.numbers_of(keys)
        have_file = numbers != NO_FILE
        live = np.zeros(len(objects), np.bool_)
        live[have_file] = self.files.live[numbers[have_file]]
        rules = self._rules(keys, modified_ms, have_file, live)
        return JudgedBatch(objects, rules, numbers, self)

    def proof(self, rule: Rule, stored: StoredObject, number: int) -> Document:
        """What decided about an object."""
        why = VERDICTS[rule].why
        proof: Document = {}
        if number != NO_FILE:
            proof = {"file": stored.key, "committedAt": _time(int(self.files.committed_ms[number]))}
        elif rule in (Rule.AFTER_THRESHOLD, Rule.NO_METADATA):
            proof = {"file": None, "threshold": iso_8601(self.threshold_ms), "oldestLiveFileAt": self.oldest}
        elif rule is Rule.OLDER_THAN_LOGS:
            begin_ms = self.files.begin_ms
            proof = {"file": None, "logsBeginAt": None if begin_ms == NEVER_MS else iso_8601(begin_ms)}
        return proof if why is None else {**proof, "why": why}

    def file_state(self, number: int) -> FileState | None:
        """None where no file is meant."""
        return None if number == NO_FILE else FileState.UPLOADED if self.files.live[number] else FileState.DELETING

    def states_of(self, object_keys: Sequence[str]) -> FoundStates:
        """The states of objects, by the logs as they were read after the listing."""
        numbers = self.files.keys.numbers_of(pa.array([key.encode() for key in object_keys], pa.binary())).tolist()
        states = {key: self.file_state(number) for key, number in zip(object_keys, numbers, strict=True)}
        return FoundStates({key: state for key, state in states.items() if state is not None}, is_standby=False)

    @property
    def oldest(self) -> str | None:
        """`oldest_ms` as text."""
        return _time(self.oldest_ms)

    def _rules(self, keys: pa.BinaryArray, modified_ms: Ints, have_file: Flags, live: Flags) -> Ints:
        named, are_uploads = self.files.keys.are_uploads(keys)
        return first_that_fits(
            len(keys),
            {
                Rule.HAS_BATCHES: live,
                Rule.LOGS_INCOMPLETE: np.full(len(keys), not self._is_complete),
                Rule.OWNERS_DELETE: have_file,
                Rule.OTHER_NAME: ~named,
                Rule.OTHER_FOLDER: ~are_uploads,
                Rule.AFTER_THRESHOLD: modified_ms >= self.threshold_ms,
                Rule.OLDER_THAN_LOGS: modified_ms - MOST_SKEW_MS < self.files.begin_ms,
            },
            Rule.NO_METADATA,
        )


@dataclass(slots=True)
class _Read:
    """The logs as they were at one time."""

    logs: CoordinatorLogs
    files: CoordinatorFiles

    @classmethod
    def now(cls, source: MetadataSource, coordinators: int | None, log_dirs: Sequence[Path]) -> _Read:
        logs = CoordinatorLogs.now(source, coordinators, log_dirs)
        return cls(logs, read_files(logs))


class CoordinatorScan(JudgedScan):
    """A scan by the logs of all coordinators."""

    def __init__(
        self,
        store: ObjectStore,
        listing: Listing,
        source: MetadataSource,
        log_dirs: Sequence[Path],
        coordinators: int | None,
        grace_ms: int,
    ) -> None:
        """`listing` is what the store had before this is made; `log_dirs` have the logs of the source, and may have
        snapshots beside them.

        Raises TieredctlError as the source, the store and `demand_listing` do, and `no-overlap` where coordinators have
        live files, and the store none of their files.
        """
        super().__init__()
        self._store, self._listing = store, listing
        self._source, self._log_dirs, self._coordinators = source, log_dirs, coordinators
        self._read = _Read.now(source, coordinators, log_dirs)
        self._is_listed, oldest_ms = self._listed()
        self._demand_overlap()
        is_complete = not any(finding.kind.incomplete for finding in self._read.logs.findings)
        self._judge = CoordinatorJudge(self._read.files, oldest_ms, grace_ms, is_complete=is_complete)

    def _besides(self) -> Document:
        return {"oldestLiveFileAt": self._judge.oldest, "files": len(self._read.files.keys)}

    def _judged(self) -> Judged:
        return Judged(UnreservedObjects(self._listing).batches(), self._judge, self._judge, self._store)

    def _finish(self, judged: Judged) -> None:
        self._gone = judged.gone
        lost = self._lost()
        self.findings += self._read.logs.findings
        self.findings += self._missing(lost)
        self.findings += self._totals.findings(self._store.url)

    def _listed(self) -> tuple[Flags, int]:
        """Flags of the files whose objects were listed; and when the oldest live file was committed or uploaded: by the
        logs, by the store's time of each live file, and in any case not after the newest object."""
        files = self._read.files
        listed = np.zeros(len(files.keys), np.bool_)
        oldest_ms, newest_ms = files.oldest_ms, UNKNOWN_MS
        for batch in UnreservedObjects(self._listing).batches():
            numbers, modified_ms = (
                files.keys.numbers_of(batch.column("key")),
                numbers_in(batch.column("lastModifiedMs")),
            )
            have_file = numbers != NO_FILE
            listed[numbers[have_file]] = True
            live_ms = modified_ms[have_file][files.live[numbers[have_file]]]
            oldest_ms = min(oldest_ms, int(live_ms.min(initial=oldest_ms)))
            newest_ms = int(modified_ms.max(initial=newest_ms))
        return listed, min(oldest_ms, newest_ms)

    def _demand_overlap(self) -> None:
        files = self._read.files
        promised = np.flatnonzero(files.live).tolist()
        if self._is_listed.any() or not promised:
            return
        if any(self._store.head(files.keys[number]) for number in islice(promised, _ASKED_BY_NAME)):
            listed = UnreservedObjects(self._listing).batches()
            demand_listing(self._store, listed, (files.keys[number] for number in promised))
            return
        message = (
            f"{self._store.url} has none of the {counted(len(promised), 'object')} that the coordinators promise: "
        )
        message += "it is another bucket or prefix, or everything in it was deleted."
        raise TieredctlError(ErrorCode.NO_OVERLAP, message, hint="Check --store and --log-dir.")

    def _lost(self) -> list[str]:
        """Live files whose object was not listed, and is not found under its key."""
        keys = self._read.files.keys
        numbers = np.flatnonzero(self._read.files.live & ~self._is_listed).tolist()
        lost: list[str] = []
        for first in range(0, len(numbers), KEYS_AT_ONCE):
            some = [keys[number] for number in numbers[first : first + KEYS_AT_ONCE]]
            answers = in_parallel(self._store, self._store.head, some)
            lost += [key for key, stored in zip(some, answers, strict=True) if stored is None]
        return lost

    def _missing(self, lost: Sequence[str]) -> Iterator[Finding]:
        """Findings about objects that are not there: lost, or unknown where a log is not whole. Coordinators delete
        meanwhile, so logs that went on are read once more."""
        if not lost:
            return
        files = self._read.files
        if self._source.advance():
            files = _Read.now(self._source, self._coordinators, self._log_dirs).files
        for first in range(0, len(lost), KEYS_AT_ONCE):
            some = lost[first : first + KEYS_AT_ONCE]
            numbers = files.keys.numbers_of(pa.array([key.encode() for key in some], pa.binary())).tolist()
            for key, number in zip(some, numbers, strict=True):
                if number == NO_FILE or not files.live[number]:
                    continue
                if files.surely_live[number]:
                    message = "a coordinator has live batches in it, and the store does not have it"
                    committed = _time(int(files.committed_ms[number]))
                    yield object_finding(FindingCode.OBJECT_MISSING, key, message, committedAt=committed)
                else:
                    message = "its object is not there; its coordinator's log is not whole, and may lack its deletion"
                    yield object_finding(FindingCode.UNREADABLE, key, message)


def _time(time_ms: int) -> str | None:
    return None if time_ms == UNKNOWN_MS else iso_8601(time_ms)
