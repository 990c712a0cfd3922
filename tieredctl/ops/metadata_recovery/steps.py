"""What an operator does before and after a recovery, in order: a broker that starts with an empty metadata topic moves
its log start, which cannot be moved back while it runs."""

from __future__ import annotations

from tieredctl.ops.metadata_recovery.recovery_plan import Recovery

HOLD_BACK = (
    "rlmm.config.remote.log.metadata.common.client.bootstrap.servers=localhost:1",
    "rlmm.config.remote.log.metadata.common.client.request.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.common.client.default.api.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.initialization.retry.max.timeout.ms=86400000",
)
"""With these, a broker serves the metadata topic to others but itself waits for it, for up to a day: as a leader, it
neither moves its log start nor copies or deletes meanwhile. `rlmm.config.` is
remote.log.metadata.manager.impl.prefix."""

AFTERWARDS = "If brokers were held back, remove those lines from their properties, and restart them one by one."
_INDEXES = (
    "Rebuild the indexes that are lost as well, before anything reads: tieredctl recover indexes --all … --apply, or "
    "with the topics that lack some, or with what `verify -o json` wrote."
)
_GIVEN_UP = "If DeleteRecords or retention moved the log start, there is nothing to do: these segments are deleted."
_KEEP_PLAN = "Otherwise, keep this plan while the brokers run: this command again, with -o json > plan.json"
_FILES = (
    "On every broker, for each of its log directories, put the log starts back: "
    "tieredctl recover log-starts plan.json --log-dir DIR --apply"
)


def steps(recovery: Recovery, *, is_live: bool) -> list[str]:
    """One sentence per step; none if there is nothing to do."""
    if recovery.moved:
        known = any(one.moved is not None and one.moved.unknown_because is None for one in recovery.moved)
        return _put_back() if known else [_GIVEN_UP, "Otherwise, see each partition's log-start-above-store finding."]
    if not recovery.to_recover:
        return []
    without_indexes = any(segment.lacks for one in recovery.partitions for segment in one.to_recover())
    before = (
        "Until this is done, do not restart brokers or move leaders: one that starts with an empty metadata topic moves"
    )
    run = "Run this command again with" if is_live else "Run it with --bootstrap-server,"
    return [
        f"{before} its log start to its local log, and then deletes earlier segments from the store.",
        "If the brokers are down, start them held back, with these lines in each one's properties: "
        + "; ".join(HOLD_BACK),
        f"{run} --apply, and with the brokers' remote.log.metadata.topic.num.partitions as --metadata-partitions.",
        *([_INDEXES] if without_indexes else ()),
        AFTERWARDS,
    ]


def _put_back() -> list[str]:
    return [
        _GIVEN_UP,
        _KEEP_PLAN,
        f"Stop all brokers, and give them these properties: {'; '.join(HOLD_BACK)}",
        _FILES,
        "Start the brokers, and run this command again with --apply: the segments are no longer below the log start.",
        "Remove these properties, and restart the brokers.",
    ]
