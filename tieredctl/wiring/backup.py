"""`backup run`, `status`, `verify` and `prune`: a cluster kept beside its bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.backup.cluster_state import fetch_cluster_state
from tieredctl.ops.backup.kept_secrets import closed_secrets
from tieredctl.ops.backup.key_pairs import Identity, read_recipients
from tieredctl.ops.backup.manifests import SECRETS_FILE, Manifest
from tieredctl.ops.backup.pruning import PruneOutcome, Pruning
from tieredctl.ops.backup.pruning_plan import KeepRules, PrunePlan, plan_prune
from tieredctl.ops.backup.run import Backup, BackupRun
from tieredctl.ops.backup.sets import NOT_READABLE, ClusterSets, damage, the_cluster
from tieredctl.ops.guards.kept_versions import WhatStays, retention_of
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ports.object_store import Capability, ObjectStore, WritableObjectStore
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, QuorumPlace, StorePlace


def run_backup(
    cluster: ClusterPlace,
    quorum: QuorumPlace,
    to: StorePlace,
    clock_ms: Callable[[], int],
    *,
    full: bool = False,
    dry_run: bool = False,
    recipients: Sequence[Path] = (),
) -> Backup:
    """Writes a set of a live cluster, with the events since the set before, or all if `full`; a dry run only reads all
    that would be in it. `recipients` are files with the public keys to which secrets are encrypted.

    The cluster's own metadata is read first, and the events after it: of a topic that is made meanwhile there are
    events, and the next set has the topic. Raises TieredctlError where either cannot be read, or nothing be written.
    """
    keys = read_recipients(recipients)
    store = to.open_writable_store()
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        message = f"{store.url} cannot keep two runs apart: it has no conditional writes."
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message)
    with cluster.open_with_groups() as live, TemporaryDirectory(prefix="tieredctl-backup-") as folder:
        if live.cluster_id is None:
            raise TieredctlError(ErrorCode.BROKER_REFUSED, "The cluster does not report its id.", hint="")
        sets: ClusterSets[WritableObjectStore] = ClusterSets(store, live.cluster_id)
        run = BackupRun(sets, Path(folder), clock_ms, full, dry_run, keys)
        with quorum.open(live.cluster_id) as source:
            state = fetch_cluster_state(source, Path(folder))
        with closing(MetadataPlace(cluster=cluster).open_source()) as events:
            return run.run(state, events, live)


def backup_sets(place: StorePlace, cluster_id: str | None) -> ClusterSets[ObjectStore]:
    """The sets of the cluster that is named, or of the only one. Raises TieredctlError as `the_cluster` does."""
    store = place.open_store()
    return ClusterSets(store, the_cluster(store, cluster_id))


def newest_restorable(sets: ClusterSets[ObjectStore]) -> tuple[list[Manifest], int | None, list[Finding]]:
    """The manifests that can be read, the number of the newest set whose chain is whole, by the manifests and the sizes
    of files alone, None where there is none, and why those after it are not."""
    passed_over: list[Finding] = []
    for number in reversed(sets.numbers()):
        try:
            lacking = [one.manifest for one in sets.chain(number) if not sets.has_files(one.manifest)]
        except TieredctlError as error:
            if error.code not in NOT_READABLE:
                raise
            if error.code is ErrorCode.UNDECODABLE:  # else it was pruned meanwhile
                passed_over.append(damage(sets.manifest_key(number), error.message, number))
            continue
        if not lacking:
            return _readable(sets), number, passed_over
        what = f"files of set {lacking[0].number}, which it needs, are missing or have another size"
        passed_over.append(damage(sets.manifest_key(number), what, number))
    return _readable(sets), None, passed_over


def _readable(sets: ClusterSets[ObjectStore]) -> list[Manifest]:
    manifests: list[Manifest] = []
    for number in sets.numbers():
        try:
            manifests.append(sets.read(number).manifest)
        except TieredctlError as error:
            if error.code not in NOT_READABLE:
                raise
    return manifests


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """What is wrong with sets, and what of their encrypted secrets was opened."""

    findings: Sequence[Finding]
    with_secrets: int
    """How many of the sets whose manifest can be read have encrypted secrets."""
    opened: int
    """In how many of these a private key opened them."""


def check_backup(sets: ClusterSets[ObjectStore], key: Identity | None = None) -> BackupCheck:
    """Reads every byte of the sets. With a private key, all secrets have to be opened by it, in memory. Raises
    TieredctlError as the store does."""
    found, known = sets.examined()
    sealed = [one.manifest for one in known.values() if one.manifest.file(SECRETS_FILE) is not None]
    if key is None:
        return BackupCheck(found, len(sealed), 0)
    closed = [finding for one in sealed if (finding := closed_secrets(sets, one, key)) is not None]
    seen = {one.subject for one in found}
    found += [one for one in closed if one.subject not in seen]
    return BackupCheck(found, len(sealed), len(sealed) - len(closed))


@dataclass(frozen=True, slots=True)
class BackupPruning:
    """A plan for the sets of a cluster, and what applies it."""

    plan: PrunePlan
    _place: StorePlace
    _clock_ms: Callable[[], int]

    def apply(self) -> tuple[PruneOutcome, WhatStays]:
        """Removes what was shown, and says what the store keeps of it. Raises TieredctlError if it cannot begin."""
        store = self._place.open_writable_store()
        sets: ClusterSets[WritableObjectStore] = ClusterSets(store, self.plan.cluster_id)
        with lease_held(store, "backup prune", self._clock_ms) as hold:
            outcome = Pruning(sets, self.plan, lambda: plan_prune(sets, self.plan.rules, hold.clock()), hold).run()
        return outcome, WhatStays(retention_of(store), outcome.done, outcome.bytes)


def backup_pruning(
    place: StorePlace, cluster_id: str | None, rules: KeepRules, clock_ms: Callable[[], int]
) -> BackupPruning:
    """The plan, by the sets of the cluster that is named, or of the only one; changes nothing. Raises TieredctlError as
    `plan_prune` and `the_cluster` do, and `clock-skew` where host and store disagree about the time."""
    sets = backup_sets(place, cluster_id)
    demand_common_time(sets.store, clock_ms)
    return BackupPruning(plan_prune(sets, rules, clock_ms()), place, clock_ms)
