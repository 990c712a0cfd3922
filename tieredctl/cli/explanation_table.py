"""An explanation as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.cli.output import Item, TableColumn
from tieredctl.ops.remote.inventory import iso_8601

EXPLANATION_COLUMNS = (TableColumn("ABOUT", "about"), TableColumn("ANSWER", "answer"))

_PLACES = {
    "below-log-start": "no longer anywhere: the log begins at {logStartOffset}",
    "remote": "in remote storage only: the leader's disk begins at {localLogStartOffset}",
    "remote-and-local": "in remote storage, and on the leader's disk, which begins at {localLogStartOffset}",
    "local": "on the leader's disk only, which begins at {localLogStartOffset}",
    "end": "not written yet: the next record gets it",
    "above-end": "not written yet: the log ends before {endOffset}",
    "lost": "nowhere: no remote segment holds it, and the leader's disk begins at {localLogStartOffset}",
}
_METADATA_PLACES = {
    "remote": "in remote storage; whether a broker's disk has it too, only a live cluster knows",
    "not-remote": "in no remote segment; whether a broker's disk has it, only a live cluster knows",
}
_CONSUMER = {
    "local-read": "reads it from the leader's disk",
    "remote-read": "reads it from remote storage, segment {segmentId}",
    "waits-for-records": "waits until a record is written",
    "OFFSET_OUT_OF_RANGE": "gets OFFSET_OUT_OF_RANGE, and follows its auto.offset.reset",
    "log-truncated": "is fenced (KIP-320): in the leader's log the offset has leader epoch {leaderEpoch}",
}
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


def explanation_rows(item: Item) -> Iterator[dict[str, str]]:
    """An explanation's document in sentences, one per row."""
    for about, answer in _facts(item):
        yield {"about": about, "answer": answer}


def _facts(item: Item) -> Iterator[tuple[str, str]]:
    places, log = (_PLACES, item["log"]) if item["log"] else (_METADATA_PLACES, {})
    yield "offset", f"{item['offset']} is {places[item['place']].format_map(log)}"
    if item["timestampMs"] is not None:
        yield "record time", f"{iso_8601(item['timestampMs']) or item['timestampMs']}"
    if item["leaderEpoch"] is not None:
        yield "leader epoch", f"{item['leaderEpoch']}"
    if item["segment"]:
        yield "segment", _segment(item["segment"])
    yield from (("other segment", _segment(segment)) for segment in item["otherSegments"])
    for stored in item["objects"] or ():
        size = f"{stored['size']} bytes" if stored["inStore"] else "MISSING"
        yield stored["part"], f"{size}, {stored['key']}"
    if item["highestRemoteOffset"] is not None:
        yield "remote storage", f"reaches to offset {item['highestRemoteOffset']}"
    if item["log"]:
        yield from _fetches(item)


def _segment(segment: Item) -> str:
    offsets = f"{segment['startOffset']}..{segment['endOffset']}"
    return f"{segment['segmentId']}, offsets {offsets}, {segment['segmentSizeInBytes']} bytes, {segment['state']}"


def _fetches(item: Item) -> Iterator[tuple[str, str]]:
    fetch = item["consumerFetch"]
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
