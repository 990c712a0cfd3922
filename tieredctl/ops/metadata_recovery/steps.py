"""What an operator does around a recovery, in order: a broker that starts with an empty metadata topic moves what
cannot be moved back while it runs."""

from __future__ import annotations

from tieredctl.ops.metadata_recovery.recovery_plan import Recovery

HOLD_BACK = (
    "rlmm.config.remote.log.metadata.common.client.bootstrap.servers=localhost:1",
    "rlmm.config.remote.log.metadata.common.client.request.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.common.client.default.api.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.initialization.retry.max.timeout.ms=86400000",
)
"""With these a broker serves the metadata topic to others and waits for it itself, for a day: no leader of it looks
for its log start, copies or deletes meanwhile. `rlmm.config.` is remote.log.metadata.manager.impl.prefix."""

AFTERWARDS = "Take the lines out of brokers that were held back, and restart them one after the other."
_GIVEN_UP = "Did DeleteRecords or retention move the log start? Then nothing is to be done: these segments are deleted."
_FILES = (
    "For each partition that has `restore` in -o json, in each log directory with the partition, write its "
    "`logStartOffset` into the line of log-start-offset-checkpoint, and its `leaderEpochCheckpoint` into the file "
    "leader-epoch-checkpoint of the partition's folder."
)


def steps(recovery: Recovery, *, is_live: bool) -> list[str]:
    """Each a sentence; none where nothing is to be done."""
    if recovery.moved:
        known = any(one.moved is not None and one.moved.unknown_because is None for one in recovery.moved)
        return _put_back() if known else [_GIVEN_UP, "Else see what log-start-above-store says of each partition."]
    if not recovery.to_recover:
        return []
    before = (
        "Until it is done, restart no broker and move no leader: one that starts with an empty metadata topic moves"
    )
    return [
        f"{before} its log start to its local log, and deletes from the store what it is told of below.",
        "Are the brokers down? Then start them held back, with these lines in each one's properties: "
        + "; ".join(HOLD_BACK),
        "Run this command again with --apply." if is_live else "Run it with --bootstrap-server and --apply.",
        AFTERWARDS,
    ]


def _put_back() -> list[str]:
    return [
        _GIVEN_UP,
        f"Else stop all brokers, and give them these properties: {'; '.join(HOLD_BACK)}",
        _FILES,
        "Start the brokers, and run this command again with --apply: the segments are no longer below the log start.",
        "Take the properties away again, and restart the brokers.",
    ]
