"""Whether a node's snapshots are what its log says: a snapshot and the log after it give the next snapshot.

The bytes of a snapshot prove nothing about what they say: an id in it can be changed, and its CRC made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import DecodeError
from tieredctl.kafka.metadata_log import MetadataLog, SnapshotFile, logged_records
from tieredctl.kafka.node_replay import records_of_one_epoch
from tieredctl.kraft.difference import Change, changes
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A snapshot that is another cluster than the log gives up to its end."""

    snapshot: SnapshotFile
    begun_with: SnapshotFile | None
    """The earlier snapshot that the log was replayed on; None for a log from its first record on."""
    changes: Sequence[Change]
    """From what the log gives to what the snapshot has; at least one."""

    @property
    def words(self) -> str:
        """For people: what differs first, and by what."""
        witness = "the log" if self.begun_with is None else f"{self.begun_with.path.name} and the log after it"
        more = f", and {len(self.changes) - 1} more" if len(self.changes) > 1 else ""
        return f"{witness} gives another cluster up to its end: {self.changes[0].words}{more}"


@dataclass(slots=True)
class SnapshotHistory:
    """The snapshots that were held against the log before their end."""

    confirmed: list[SnapshotFile] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    _replay: MetadataReplay = field(default_factory=MetadataReplay)

    @classmethod
    def of(cls, log: MetadataLog, until: int | None = None) -> SnapshotHistory:
        """Replays the log once, as far as it is sound, on the earliest snapshot that reaches it or from offset 0 on, up
        to the end offset `until`, the end of the log by default. Raises OSError.

        In neither list is what the log cannot tell: the first snapshot of a log that begins later, one that does not
        end with a batch of the log, and any of which some records are not understood, before it or in it.
        """
        history = cls()
        held = sorted(log.snapshots, key=lambda one: (one.end_offset, one.epoch))
        held = [one for one in held if until is None or one.end_offset <= until]
        begun_with = None if log.start_offset == 0 else history._begin(log, held)
        if log.segments and (begun_with is not None or log.start_offset == 0):
            after = [one for one in held if begun_with is None or one.end_offset > begun_with.end_offset]
            history._hold(log, begun_with, [one for one in after if one.end_offset > 0])
        return history

    def _begin(self, log: MetadataLog, held: Sequence[SnapshotFile]) -> SnapshotFile | None:
        """The first sound one of the snapshots that reach the log, loaded."""
        for one in held:
            image = _image(one) if one.end_offset >= log.start_offset else None
            if image is not None:
                self._replay.image = image
                return one
        return None

    def _hold(self, log: MetadataLog, begun_with: SnapshotFile | None, held: Sequence[SnapshotFile]) -> None:
        waiting = list(held)
        try:
            for end_offset in self._ends(log, self._replay.image.end_offset):
                while waiting and waiting[0].end_offset <= end_offset:
                    one = waiting.pop(0)
                    if one.end_offset == end_offset:
                        self._compare(one, begun_with)
                if not waiting:
                    return
        except DecodeError:
            return  # damage in the log hides what comes after it

    def _ends(self, log: MetadataLog, from_offset: int) -> Iterator[int]:
        """Where each batch of the log ends (exclusive), once it is in the image."""
        for batch in log.batches(from_offset):
            if batch.header.base_offset >= from_offset:
                self._replay.load_log(logged_records(batch))
                yield batch.header.last_offset + 1

    def _compare(self, snapshot: SnapshotFile, begun_with: SnapshotFile | None) -> None:
        image = _image(snapshot)
        if image is None or not image.is_certain or not self._replay.image.is_certain:
            return
        differences = list(changes(self._replay.image, image))
        if differences:
            self.contradictions.append(Contradiction(snapshot, begun_with, differences))
        else:
            self.confirmed.append(snapshot)


def _image(snapshot: SnapshotFile) -> ClusterImage | None:
    """A snapshot's image; None where it is not whole and sound, or not of the epoch that its name has."""
    replay = MetadataReplay()
    try:
        replay.load_snapshot(records_of_one_epoch(snapshot), snapshot.end_offset)
    except DecodeError:
        return None
    return replay.image
