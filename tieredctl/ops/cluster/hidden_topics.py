"""Topics that the metadata has live segments of and a live cluster does not show: hidden is not absent.

A user who may not describe a topic does not see it in any list. Asked for it by id, brokers tell what does not exist
from what the user may not see.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import TopicLookup

HIDDEN = "topics that the cluster does not show"
"""Their name in findings."""
_NAMED = 5


def hidden_topics(
    shown: Collection[str], live_segments: Mapping[TopicIdPartition, int], lookup: TopicLookup
) -> list[Finding]:
    """The finding about topics that are not known to be gone and not among the names that the cluster has `shown`; none
    where there are none. `live_segments` are how many the metadata has, by partition; the cluster is asked only about
    topics that it did not show."""
    segments: dict[str, int] = {}
    names: dict[str, str] = {}
    for partition, number in live_segments.items():
        if number and partition.topic not in shown:
            segments[partition.topic_id] = segments.get(partition.topic_id, 0) + number
            names[partition.topic_id] = partition.topic
    answers = lookup.ask(segments) if segments else {}
    hidden = [topic_id for topic_id in sorted(segments) if answers.get(topic_id) is not False]
    if not hidden:
        return []
    listed = ", ".join(f"{names[one]} ({one})" for one in hidden[:_NAMED])
    more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
    total = sum(segments[one] for one in hidden)
    why = lookup.describe().get("unanswered")
    reason = f"the cluster gave no answer: {why}" if why else "the user needs the operation Describe on them"
    message = (
        f"the metadata has {counted(total, 'live segment')} of {listed}{more}, of which nothing is known: {reason}"
    )
    evidence: dict[str, object] = {"topicIds": hidden, "segments": total}
    return [Finding(FindingCode.CHECK_NOT_MADE, HIDDEN, message, evidence)]
