"""An explanation as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import TextWrapper
from typing import TextIO

from tieredctl.cli.output import Item, TableColumn, write_table
from tieredctl.cli.shown_quantities import shown_size
from tieredctl.cli.terminal import width_of
from tieredctl.cli.timeline_text import Marked, TimelineDrawing
from tieredctl.drawing.timeline import Part
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.printable import printable
from tieredctl.model.quantities import size_text
from tieredctl.ops.explanation.explanation import Explanation, Place

EXPLANATION_COLUMNS = (TableColumn("ABOUT", "about"), TableColumn("ANSWER", "answer", importance=2))
EXPLANATION_FIELDS = (
    *("topic", "topicId", "partition", "offset", "timestampMs", "place", "leaderEpoch", "segment", "otherSegments"),
    *("objects", "highestRemoteOffset", "timeline", "leader", "log", "consumerFetch", "followerFetch"),
    *("emptyFollower", "emptyFollowerFromLastTieredOffset"),
)
_ON_THE_WAY = {Part.COPYING: "being copied", Part.DELETING: "being deleted"}
_LEAST_ANSWER = 30
_INDENT = "    "

_PLACES = {
    "below-log-start": "no longer anywhere: the log begins at {logStartOffset}",
    "remote": "in remote storage only: the leader's disk begins at {localLogStartOffset}",
    "remote-and-local": "in remote storage, and on the leader's disk, which begins at {localLogStartOffset}",
    "local": "on the leader's disk only, which begins at {localLogStartOffset}",
    "end": "not written yet: the next record gets it",
    "above-end": "not written yet: the log ends before {endOffset}",
    "lost": "nowhere that brokers know: the metadata has no segment for it, and the leader's disk begins at "
    "{localLogStartOffset}; if the store has it, `recover metadata` registers it again",
}
_METADATA_PLACES = {
    "remote": "in remote storage; whether a broker's disk has it too, only a live cluster knows",
    "not-remote": "in no remote segment; whether a broker's disk has it, only a live cluster knows",
}
_IN_ANOTHER_EPOCH = "in no remote segment of this leader epoch; the other segment has another one"
_CONSUMER = {
    "local-read": "reads it from the leader's disk",
    "remote-read": "reads it from remote storage, segment {segmentId}",
    "waits-for-records": "waits until a record is written",
    "OFFSET_OUT_OF_RANGE": "gets OFFSET_OUT_OF_RANGE, and follows its auto.offset.reset",
    "log-truncated": "is fenced (KIP-320): in the leader's log the offset has leader epoch {leaderEpoch}",
}
_NEEDED_TO_READ = ("log", "offset-index", "time-index")
"""Without one of these a broker answers a fetch with an error."""
_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_STEPS = {
    "truncate-to": "truncates its log to {offset}",
    "learn-latest": "asks for the end (ListOffsets -1): {offset}",
    "learn-earliest": "asks for the log start (-2): {offset}",
    "learn-earliest-local": "asks for the local log start (-4): {offset}, leader epoch {leaderEpoch}",
    "learn-earliest-pending-upload": "asks for the earliest pending upload (-6): {offset}, leader epoch {leaderEpoch}",
    "learn-epoch-end-offset": "asks for the epoch before (OffsetForLeaderEpoch): {leaderEpoch}, ends before {offset}",
    "find-remote-segment": "looks for the segment with offset {offset}, leader epoch {leaderEpoch}: {segmentId}",
    "truncate-fully-and-start-at": "truncates its whole log, and starts at {offset}",
    "build-auxiliary-state": "takes leader epochs and producer snapshot from segment {segmentId}",
    "try-again": "retries until it can begin",
}
_WAITS = {
    "pending-upload-unknown": "waits: the leader reports no pending upload while all of its log is uploaded",
    "remote-segment-unknown": "waits until there is such a segment, even where nothing is uploaded yet",
}


_DRAWN = {
    Place.BELOW_LOG_START: "below the log start",
    Place.REMOTE: "tiered only",
    Place.REMOTE_AND_LOCAL: "both tiered and local",
    Place.LOCAL: "local only",
    Place.END: "not written yet",
    Place.ABOVE_END: "not written yet",
    Place.LOST: "missing",
    Place.NOT_REMOTE: "not tiered",
}


def write_explanation(explanation: Explanation, rows: Sequence[Item], out: TextIO, now_ms: int) -> None:
    """The partition with the offset marked, and under it the sentences."""
    if explanation.timeline.bounds is not None:
        TimelineDrawing(out, now_ms).write_timeline(
            explanation.timeline, Marked(explanation.offset, _drawn_place(explanation))
        )
        out.write("\n")
    width = width_of(out)
    widest = max(len(row["about"]) for row in rows) + 2
    if width is None:
        write_table(EXPLANATION_COLUMNS, rows, out, wide=False)
    elif width - widest >= _LEAST_ANSWER:
        headed = [("ABOUT", "ANSWER"), *((row["about"], row["answer"]) for row in rows)]
        _write_wrapped([(f"{about:<{widest}}", answer) for about, answer in headed], out, width, " " * widest)
    else:
        _write_wrapped([(f"{row['about']}: ", row["answer"]) for row in rows], out, width, _INDENT)


def _drawn_place(explanation: Explanation) -> str:
    """In few words; what only a leader knows is left out where none was asked."""
    place = "tiered" if explanation.live is None and explanation.segment else _DRAWN[explanation.place]
    if explanation.place is Place.NOT_REMOTE and any(
        other.metadata.state is _FINISHED for other in explanation.other_segments
    ):
        place = "not tiered in this leader epoch"
    parts = () if explanation.segment else explanation.timeline.parts_at(explanation.offset)
    return ", ".join([place, *(text for part, text in _ON_THE_WAY.items() if part in parts)])


def _write_wrapped(rows: Sequence[tuple[str, str]], out: TextIO, width: int, indent: str) -> None:
    for about, answer in rows:
        text = TextWrapper(
            width, initial_indent=about, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        out.writelines(f"{printable(line)}\n" for line in text.wrap(printable(answer)))


def explanation_rows(item: Item) -> Iterator[dict[str, str]]:
    """An explanation's document in sentences, one per row."""
    for about, answer in _facts(item):
        yield {"about": about, "answer": answer}


def _facts(item: Item) -> Iterator[tuple[str, str]]:
    places, log = (_PLACES, item["log"]) if item["log"] else (_METADATA_PLACES, {})
    where = places[item["place"]].format_map(log)
    if item["place"] == Place.NOT_REMOTE and any(one["state"] == _FINISHED.name for one in item["otherSegments"]):
        where = _IN_ANOTHER_EPOCH
    yield "offset", f"{item['offset']} is {where}"
    if item["timestampMs"] is not None:
        from tieredctl.ops.remote.inventory import iso_8601

        yield "record time", f"{iso_8601(item['timestampMs']) or item['timestampMs']}"
    if item["leaderEpoch"] is not None:
        yield "leader epoch", f"{item['leaderEpoch']}"
    if item["segment"]:
        yield "segment", _segment(item["segment"])
    yield from (("other segment", _segment(segment)) for segment in item["otherSegments"])
    for stored in item["objects"] or ():
        size = f"{size_text(stored['size'])}" if stored["inStore"] else "MISSING"
        yield stored["part"], f"{size}, {stored['key']}"
    if item["highestRemoteOffset"] is not None:
        yield "remote storage", _reach(item["highestRemoteOffset"], item["timeline"]["copied"])
    if item["log"]:
        yield from _fetches(item)


def _reach(highest: int, copied: Sequence[Sequence[int]]) -> str:
    """Kafka remembers the highest offset of a leader epoch after the segments that had it are deleted."""
    last = max((last for _, last in copied), default=None)
    if last is None:
        return f"has no whole segment any more: offsets up to {highest} were copied"
    reached = min(last, highest)
    return f"reaches to offset {reached}" + (f"; up to {highest} was copied, and deleted" if reached < highest else "")


def _segment(segment: Item) -> str:
    offsets = f"{segment['startOffset']}..{segment['endOffset']}"
    return f"{segment['segmentId']}, offsets {offsets}, {shown_size(segment['segmentSizeInBytes'])}, {segment['state']}"


def _fetches(item: Item) -> Iterator[tuple[str, str]]:
    fetch = item["consumerFetch"]
    missing = [one["part"] for one in item["objects"] or () if not one["inStore"] and one["part"] in _NEEDED_TO_READ]
    if missing and fetch["outcome"] == "remote-read":
        yield "consumer", f"cannot read it: segment {fetch['segmentId']} lacks {' and '.join(missing)}"
    else:
        yield "consumer", _CONSUMER[fetch["outcome"]].format_map(fetch)
    yield from _follower("follower at this offset", item["followerFetch"])
    yield from _follower("empty follower", item["emptyFollower"])
    if item["emptyFollowerFromLastTieredOffset"]:
        yield from _follower("empty follower, last tiered offset", item["emptyFollowerFromLastTieredOffset"])


def _follower(about: str, fetch: Item) -> Iterator[tuple[str, str]]:
    for number, step in enumerate(fetch["steps"], 1):
        yield about, f"{number}. {_step(step)}"
    if fetch["wait"]:
        yield about, _WAITS[fetch["wait"]]


def _step(step: Item) -> str:
    if step["action"] == "fetch":
        return f"fetches from {step['offset']}: {step['error'] or 'records'}"
    values = {name: "none" if value is None else value for name, value in step.items()}
    return _STEPS[step["action"]].format_map(values)
