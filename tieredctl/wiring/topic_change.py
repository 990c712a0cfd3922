"""`topic enable` and `topic disable`: plan a change of a topic's settings on a live cluster, make it, await it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tieredctl.model.findings import Finding
from tieredctl.model.local_log import LocalReplica
from tieredctl.ops.change import Outcome
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.tiering.config_change import ConfigChange, make_change
from tieredctl.ops.tiering.disable import DisablePlan, Form, plan_disable
from tieredctl.ops.tiering.enable import EnablePlan, LocalRetention, plan_enable
from tieredctl.ops.tiering.remote_topic import RemoteTopic
from tieredctl.ops.tiering.watching import Patience, Seen, Told, await_first_segment, await_nothing_left, not_seen
from tieredctl.ports.cluster import Cluster
from tieredctl.wiring.places import ClusterPlace, MetadataPlace


@dataclass(slots=True, kw_only=True)
class TopicOutcome(Outcome):
    """The outcome of a change, and whether its effect was seen."""

    seen: Seen | None = None
    """None if nothing was awaited."""


class TopicPlan(Protocol):
    """The settings to make, and what was found about them."""

    @property
    def change(self) -> ConfigChange: ...

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def is_refused(self) -> bool:
        """Whether something has to be fixed first."""
        ...


class TopicChange(Protocol):
    """A plan, and what applies it while the cluster is open."""

    @property
    def plan(self) -> TopicPlan: ...

    def make(self) -> None:
        """Makes the change that was shown, in one request. Raises TieredctlError if something has changed since, and as
        the cluster does."""
        ...

    def wait(self, patience: Patience, tell: Told) -> TopicOutcome:
        """Waits for its effect."""
        ...


@dataclass(frozen=True, slots=True)
class TopicEnabling:
    """A plan to tier a topic, and what applies it while the cluster is open."""

    plan: EnablePlan
    _cluster: Cluster

    @property
    def source(self) -> Mapping[str, Any]:
        """What it is about."""
        return self._cluster.describe()

    @property
    def cluster_id(self) -> str | None:
        return self._cluster.cluster_id

    def make(self) -> None:
        """Makes the change that was shown. Raises TieredctlError as `make_change` does."""
        make_change(self._cluster, self.plan.change)

    def wait(self, patience: Patience, tell: Told) -> TopicOutcome:
        """Waits for the first segment in remote storage. Raises TieredctlError as `await_first_segment` does."""
        plan = self.plan
        if not plan.shows_first_segment:
            return TopicOutcome(seen=Seen.LIKE_BEFORE)
        outcome = await_first_segment(self._cluster, plan.change.topic, plan.partitions, plan.closed, patience, tell)
        late = not_seen(plan.change.topic, "no segment was seen in remote storage", patience.seconds)
        return TopicOutcome(seen=outcome, findings=[late] if outcome is Seen.NOT_IN_TIME else [])


@dataclass(frozen=True, slots=True)
class TopicDisabling:
    """A plan to disable tiered storage for a topic, and what applies it while the cluster is open."""

    plan: DisablePlan
    _cluster: Cluster
    _remote: RemoteTopic
    _shown: frozenset[str]
    """The ids of the segments in the plan."""

    @property
    def source(self) -> Mapping[str, Any]:
        """What it is about."""
        return self._cluster.describe()

    @property
    def cluster_id(self) -> str | None:
        return self._cluster.cluster_id

    def make(self) -> None:
        """Makes the change that was shown. Raises TieredctlError as `make_change` does, and `world-changed` if it would
        delete segments that were not shown."""
        if self.plan.form is Form.DELETE:
            self._remote.demand_nothing_new(self._shown)
        make_change(self._cluster, self.plan.change)

    def wait(self, patience: Patience, tell: Told) -> TopicOutcome:
        """Waits until the last segment is deleted. Raises TieredctlError as `await_nothing_left` does."""
        outcome = await_nothing_left(self._cluster, self._remote, patience, tell)
        late = not_seen(self.plan.change.topic, "not all segments were seen deleted", patience.seconds)
        return TopicOutcome(seen=outcome, findings=[late] if outcome is Seen.NOT_IN_TIME else [])


@contextmanager
def topic_enabling(
    place: ClusterPlace, topic: str, local: LocalRetention, replicas: Sequence[LocalReplica] | None, now_ms: int
) -> Iterator[TopicEnabling]:
    """The plan to tier a topic, on the open cluster. Raises TieredctlError as `plan_enable` does."""
    metadata = FollowedMetadata(MetadataPlace(cluster=place).open_source)
    with place.open() as cluster, closing(metadata):
        remote = RemoteTopic(cluster.topic(topic), metadata)
        yield TopicEnabling(plan_enable(cluster, remote, local, replicas, now_ms), cluster)


@contextmanager
def topic_disabling(place: ClusterPlace, topic: str, form: Form, *, at_once: bool) -> Iterator[TopicDisabling]:
    """The plan to disable tiered storage for a topic, on the open cluster. Raises TieredctlError as `plan_disable`
    does, and if the metadata cannot be read."""
    metadata = FollowedMetadata(MetadataPlace(cluster=place).open_source)
    with place.open() as cluster, closing(metadata):
        remote = RemoteTopic(cluster.topic(topic), metadata)
        remote.refresh()
        plan = plan_disable(cluster, remote, form, at_once=at_once)
        shown = frozenset(remote.segment_ids())
        yield TopicDisabling(plan, cluster, remote, shown)
