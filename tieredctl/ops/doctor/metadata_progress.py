"""Whether brokers still apply the cluster's metadata.

When a topic is deleted, or no longer tiered, leaders delete its remote segments in the thread that applies cluster
metadata. Where that thread waits to write an event to a metadata partition whose leader is gone, no broker may be left
that can take the lead: the brokers stand still until they are restarted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import Cluster, MetadataProgress

_SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, slots=True)
class Watch:
    """How long a broker must stand still before that is reported, and how to spend the time between two checks. One
    that starts may take some seconds to apply the first changes after those that it began with."""

    seconds: float = 15.0
    pause: Callable[[], None] = lambda: time.sleep(_SECONDS_BETWEEN_LOOKS)


def brokers_at_a_standstill(cluster: Cluster, watch: Watch) -> Finding | None:
    """The finding that brokers lag the controllers' metadata and do not advance. One check is enough where none lags.

    One that stops answering is stopped, or starts again: where it stands is unknown. Raises TieredctlError as the
    cluster does.
    """
    first = last = cluster.metadata_progress()
    still = _behind(first)
    deadline = time.monotonic() + watch.seconds
    while still and time.monotonic() < deadline:
        watch.pause()
        last = cluster.metadata_progress()
        still = {broker: offset for broker, offset in still.items() if last.applied.get(broker) in (offset, None)}
    still = {broker: offset for broker, offset in still.items() if last.applied.get(broker) == offset}
    # The last record may be one that only controllers apply: a log that does not grow proves nothing.
    return _finding(still, last, watch.seconds) if still and _end(last) > _end(first) else None


def _end(progress: MetadataProgress) -> int:
    """By the controllers; where they may not be asked, by the most advanced broker."""
    return max(offset or 0 for offset in (progress.end, *progress.applied.values()))


def _behind(progress: MetadataProgress) -> dict[int, int]:
    end = _end(progress)
    return {broker: offset for broker, offset in progress.applied.items() if offset is not None and offset < end}


def _finding(still: dict[int, int], last: MetadataProgress, seconds: float) -> Finding:
    named = ", ".join(map(str, sorted(still)))
    silent = sorted(broker for broker, offset in last.applied.items() if offset is None)
    end = _end(last)
    stays = ", ".join(f"broker {broker} at {offset}" for broker, offset in sorted(still.items()))
    message = (
        f"no cluster metadata was applied for {seconds:g} s, so new leaders, topics and settings have no effect: "
        f"{stays}; the log ends at {end}"
    )
    command = f"if a topic with much remote data is being deleted or disabled, wait; otherwise restart each of: {named}"
    if silent:
        lost = ", ".join(map(str, silent))
        message += f"; no answer from {lost}"
        command = f"start {lost} again; if that does not help, restart each of: {named}"
    evidence: dict[str, object] = {
        "brokers": named,
        "appliedOffsets": {str(broker): offset for broker, offset in sorted(still.items())},
        "endOffset": end,
        "silentBrokers": silent,
        "command": command,
    }
    subject = f"broker {named}" if len(still) == 1 else f"brokers {named}"
    return Finding(FindingCode.BROKER_METADATA_STANDSTILL, subject, message, evidence)
