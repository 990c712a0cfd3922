"""What `orphans apply`, `restore` and `purge` share: whom they ask, what they open, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tieredctl.cli.arguments import pairs
from tieredctl.cli.output import OutputFormat, TableColumn
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import Receipt, ReceiptStep
from tieredctl.storage.registry import open_store, open_writable_store

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.guards.kept_versions import WhatStays
    from tieredctl.ops.orphan_removal.apply import RemovalOutcome
    from tieredctl.ops.orphan_removal.purge import PurgeOutcome
    from tieredctl.ops.orphan_removal.receipts import Receipts
    from tieredctl.storage.protocol import ObjectStore, WritableObjectStore

_UNFINISHED = (ReceiptStep.COPIED, ReceiptStep.DELETING)
_TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)
COLUMNS = (TableColumn("STATUS", "status"), TableColumn("KEY", "key"), TableColumn("ERROR", "error"))
FIELDS = ("key", "status", "size", "quarantineKey", "error")
DeleteVersions = Annotated[
    bool,
    typer.Option(
        "--delete-versions",
        help="In a bucket with versioning, also delete the versions that deleted objects leave, and delete markers.",
    ),
]


def what_stays(store: ObjectStore, result: RemovalOutcome | PurgeOutcome) -> WhatStays:
    """What the store keeps of what was deleted, as by versions and locks."""
    from tieredctl.ops.guards.kept_versions import WhatStays, retention_of

    return WhatStays(retention_of(store), result.done, result.bytes, result.versions)


def demand_source(bootstrap_server: str | None, *, offline_metadata: bool, topics: Path | None = None) -> None:
    """Objects are only deleted by what a cluster says now, or by what one that is no more said last."""
    if bootstrap_server is None and not offline_metadata:
        message = "Objects are removed by what the live cluster says: give --bootstrap-server."
        hint = "For a cluster that is no more, give --offline-metadata with --log-dir or --export."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
    if bootstrap_server is not None and (offline_metadata or topics):
        raise TieredctlError(ErrorCode.USAGE, "A live cluster is asked itself: leave the offline options out.")


def opened_store(url: str, store_option: Sequence[str] | None, *, dry_run: bool) -> WritableObjectStore:
    """A plan's store; one that is only read in a rehearsal."""
    options = pairs("--store-option", store_option)
    # Nothing is written in a rehearsal, which takes the same type.
    return cast("WritableObjectStore", open_store(url, options)) if dry_run else open_writable_store(url, options)


def receipt_rows(receipts: Receipts | None, output: OutputFormat) -> list[dict[str, object]]:
    """What became of each object; tables have only what is not done."""
    from tieredctl.ops.orphan_removal.receipts import last_receipts

    shown = last_receipts(receipts.entries(lambda _damage: None)).values() if receipts else []
    if output in _TABLES:
        wanted = (ReceiptStep.FAILED, ReceiptStep.GONE, *_UNFINISHED)
        return [_row(receipt) for receipt in shown if receipt.step in wanted]
    return list(map(_row, shown))


def _row(receipt: Receipt) -> dict[str, object]:
    return {
        "key": receipt.key,
        "status": "unfinished" if receipt.step in _UNFINISHED else receipt.step.value,
        "size": receipt.size,
        "quarantineKey": receipt.copy and receipt.copy.key,
        "error": receipt.error,
    }
