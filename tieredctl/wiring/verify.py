"""`verify`: opens and reads everything in the one safe order, whoever calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from tieredctl.config.plan_key import usable_key
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.timeline.partition_timeline import KnownLog
from tieredctl.ops.verification.accepted_losses import read_accepted_losses
from tieredctl.ops.verification.engine import Engine, LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.removed_keys import read_removed_keys
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import verify as run
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found, and where."""

    result: Verification
    source: Document
    """Which metadata, which store."""
    metadata_findings: Sequence[Finding]
    """What was wrong with the metadata; also in `result`."""
    logs: Mapping[TopicIdPartition, KnownLog]
    """Partitions of the log directories."""


def verify(
    metadata: MetadataPlace,
    store: StorePlace,
    options: VerifyOptions,
    *,
    topics: TopicsPlace | None = None,
    make_engine: Callable[[], Engine] = LocalEngine,
) -> Verified:
    """Compares the store with what the metadata promises.

    Local logs are read first, then the metadata; then the cluster is asked which topics exist, and the store is listed.
    What was found is checked against the metadata again if that may have changed, and against all of it where only a
    past is asked about: the store is as of today.

    `options` say how deep and what: `local_logs`, `topic_sources`, `read_removed` and `read_accepted` are set here.
    Without `topics`, the cluster that the metadata belongs to is asked, if it is live. `make_engine` is called once
    everything is open. Raises TieredctlError as the places and `ops.verification.verify` do.
    """
    remote = store.open()
    if metadata.log_dirs and metadata.as_of is None:
        # A running broker trims its local log only after it has written there what it copied.
        options = replace(options, local_logs=read_local_logs(metadata.log_dirs))
    with ExitStack() as stack:

        def read_again() -> EventStream:
            return stack.enter_context(replace(metadata, as_of=None).open())

        stream = stack.enter_context(metadata.open())
        metadata.demand_topic_based()
        topic_sources = stack.enter_context((topics or TopicsPlace.beside(metadata)).open(options.clock.now_ms))
        read_removed = partial(read_removed_keys, remote.store, usable_key())
        read_accepted = partial(read_accepted_losses, remote.store, usable_key())
        options = replace(options, topic_sources=topic_sources, read_removed=read_removed, read_accepted=read_accepted)
        may_have_changed = metadata.export is None or metadata.as_of is not None
        result = run(stream, *remote, make_engine(), options, read_again=read_again if may_have_changed else None)
        source = stream.source.describe() | {"store": remote.store.url, "layout": remote.layout.name}
        logs = {
            partition: KnownLog(log.leader_epochs, log.local_start_offset, log.log_start_offset, None)
            for partition, log in options.local_logs.items()
        }
        return Verified(result, source, stream.findings, logs)
