"""The secrets of a cluster in a backup set: a snapshot of these alone, encrypted to those who may restore them.

It belongs to its cluster, set and folder: put beside another set's manifest, it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.backup.cluster_state import ClusterState, read_cluster_state
from tieredctl.ops.backup.key_pairs import Identity, Recipient
from tieredctl.ops.backup.manifests import SECRETS_FILE, Manifest
from tieredctl.ops.backup.sealing import AnotherKey, seal, unseal
from tieredctl.ops.backup.sets import ClusterSets, damage, damaged
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.redaction import remember_secrets

_SECRET = "secret"
_WHICH_KEY = "Give the private key of one of the public keys that `backup run --recipient` had with --identity."


def sealed_secrets(
    state: ClusterState, recipients: Sequence[Recipient], cluster_id: str, number: int, folder: str
) -> bytes:
    """What `SECRETS_FILE` of this set has."""
    secrets = state.secrets()
    _hide(secrets)
    return seal(secrets.checkpoint(), recipients, _belongs_to(cluster_id, number, folder))


def read_secrets(sets: ClusterSets[ObjectStore], manifest: Manifest, identity: Identity) -> ClusterState:
    """The secrets of a set. Raises TieredctlError `usage` where the set has none that are encrypted, `undecodable`
    where they were altered, are another set's, not those that the manifest names, or encrypted to other keys."""
    if manifest.file(SECRETS_FILE) is None:
        message = f"Set {manifest.number} was made without --recipient: it has no encrypted secrets."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Leave out --identity, or choose another set with --set.")
    try:
        return _opened(sets, manifest, identity)
    except AnotherKey as others:
        raise TieredctlError(
            ErrorCode.UNDECODABLE, _not_opened(sets, manifest, identity, others), hint=_WHICH_KEY
        ) from None


def closed_secrets(sets: ClusterSets[ObjectStore], manifest: Manifest, identity: Identity) -> Finding | None:
    """Why a private key does not open the secrets of a set that has some: they are encrypted to other keys, or damaged.
    None where it does. Raises TieredctlError as the store does."""
    key = sets.file_key(manifest, SECRETS_FILE)
    try:
        _opened(sets, manifest, identity)
    except AnotherKey as others:
        evidence = {"what": key, "error": ErrorCode.PRIVATE_KEY.value}
        message = _not_opened(sets, manifest, identity, others).rstrip(".")
        return Finding(FindingCode.BACKUP_INCOMPLETE, key, message, evidence)
    except TieredctlError as error:
        if error.code is not ErrorCode.UNDECODABLE:
            raise
        return damage(key, error.message, manifest.number)
    return None


def _opened(sets: ClusterSets[ObjectStore], manifest: Manifest, identity: Identity) -> ClusterState:
    sealed, key = sets.read_file(manifest, SECRETS_FILE), sets.file_key(manifest, SECRETS_FILE)
    try:
        data = unseal(sealed, identity, _belongs_to(manifest.cluster_id, manifest.number, manifest.folder))
        secrets = read_cluster_state(data, manifest.metadata_log_end)
    except DecodeError as error:
        raise damaged(key, error.reason) from None
    if secrets.named_secrets() != list(manifest.encrypted):
        raise damaged(key, "its secrets are not those that the manifest names")
    _hide(secrets)
    return secrets


def _not_opened(sets: ClusterSets[ObjectStore], manifest: Manifest, identity: Identity, others: AnotherKey) -> str:
    key = sets.file_key(manifest, SECRETS_FILE)
    return f"{identity.file} does not open {key}: its public key is {identity.fingerprint}, not {others}."


def _hide(secrets: ClusterState) -> None:
    """Has no text show the values, whatever their settings are called."""
    for settings in secrets.image.configs.values():
        for value in settings.values():
            remember_secrets({_SECRET: value})


def _belongs_to(cluster_id: str, number: int, folder: str) -> bytes:
    return json.dumps({"clusterId": cluster_id, "set": number, "folder": folder}).encode("ascii")
