"""What `orphans apply`, `restore` and `purge` share: whom they ask, and how they list what happened to each object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from tieredctl.cli.output import OutputFormat
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import Receipt, ReceiptStep
from tieredctl.model.result_row import Column, JsonOnly, Main, ResultRow

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.receipts import Receipts

_UNFINISHED = (ReceiptStep.COPIED, ReceiptStep.DELETING)


@dataclass(frozen=True, slots=True)
class ReceiptRow(ResultRow):
    """What happened to an object."""

    key: Annotated[str, Column(importance=2, after="status")]
    status: str
    size: JsonOnly[int]
    quarantine_key: JsonOnly[str | None]
    error: Main[str | None]

    @classmethod
    def of(cls, receipt: Receipt, status: str) -> ReceiptRow:
        """The row of an object, by its last receipt."""
        copy = None if receipt.copy is None else receipt.copy.key
        return cls(receipt.key, status, receipt.size, copy, receipt.error)


def demand_source(bootstrap_server: str | None, *, offline_metadata: bool, are_listed: bool) -> None:
    """Objects are only deleted by a live cluster's metadata, or by the last metadata of one that no longer exists."""
    if bootstrap_server is None and not offline_metadata:
        message = "This needs a live cluster: give --bootstrap-server."
        hint = "If the cluster no longer exists, give --offline-metadata with --log-dir, --export or --metadata-source."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
    if bootstrap_server is not None and (offline_metadata or are_listed):
        raise TieredctlError(ErrorCode.USAGE, "The live cluster answers this: leave out the offline options.")


def receipt_rows(
    receipts: Receipts | None, output: OutputFormat, would_fail: Sequence[Receipt] = ()
) -> list[ReceiptRow]:
    """What happened to each object, or would happen by a rehearsal; tables only have what is not done."""
    from tieredctl.ops.orphan_removal.receipts import last_receipts

    entries = receipts.entries(lambda _damage: None) if receipts else iter(())
    shown = last_receipts(chain(entries, would_fail)).values()
    if output.is_table:
        wanted = (ReceiptStep.FAILED, ReceiptStep.GONE, *_UNFINISHED)
        return [_row(receipt) for receipt in shown if receipt.step in wanted]
    return list(map(_row, shown))


def _row(receipt: Receipt) -> ReceiptRow:
    return ReceiptRow.of(receipt, "unfinished" if receipt.step in _UNFINISHED else receipt.step.value)
