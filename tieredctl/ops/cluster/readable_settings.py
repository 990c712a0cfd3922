"""Topics' settings, as far as the user may see them: one forbidden topic does not hide the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import Cluster, ConfigValue

_NAMED = 5


@dataclass(slots=True)
class ReadableSettings:
    """Settings by topic, and the topics whose settings the user may not see, each with the error."""

    settings: dict[str, Mapping[str, ConfigValue]] = field(default_factory=dict)
    denied: dict[str, TieredctlError] = field(default_factory=dict)


def readable_topic_configs(cluster: Cluster, names: Sequence[str]) -> ReadableSettings:
    """Asks for all at once, and for fewer where that is refused. Raises TieredctlError as the cluster does."""
    found = ReadableSettings()
    left = [list(names)]
    while left:
        asked = left.pop()
        try:
            found.settings |= cluster.topic_configs(asked)
        except TieredctlError as error:
            if error.code is not ErrorCode.BROKER_REFUSED:
                raise
            if len(asked) == 1:
                found.denied[asked[0]] = error
            else:
                middle = len(asked) // 2
                left += [asked[middle:], asked[:middle]]
    return found


def unreadable_settings(denied: Mapping[str, TieredctlError]) -> list[Finding]:
    """A finding for all forbidden topics: the picture of the cluster is incomplete. None where there are none."""
    if not denied:
        return []
    first = next(iter(denied.values()))
    named = ", ".join(sorted(denied)[:_NAMED])
    more = f" and {len(denied) - _NAMED} more" if len(denied) > _NAMED else ""
    topics = "topic" if len(denied) == 1 else "topics"
    evidence: dict[str, object] = {"topics": sorted(denied)}
    return [
        Finding(
            FindingCode.CHECK_NOT_MADE, f"settings of {topics} {named}{more}", f"{first.message} {first.hint}", evidence
        )
    ]
