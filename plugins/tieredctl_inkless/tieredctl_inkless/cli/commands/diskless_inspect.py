"""`tieredctl diskless inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.wiring.places import StorePlace
from tieredctl_inkless.cli.diskless_places import DisklessOptions


def _offsets(item: Item) -> str | None:
    return None if item["baseOffset"] is None else f"{item['baseOffset']}..{item['lastOffset']}"


_COLUMNS = (
    TableColumn("POSITION", "position"),
    size_column("size"),
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("OFFSETS", _offsets),
    TableColumn("RECORDS", "records"),
    TableColumn("COMPRESSION", "compression"),
    TableColumn("MAX-TIMESTAMP", "maxTimestamp"),
    TableColumn("PRODUCER", "producerId"),
    TableColumn("SEQUENCE", "baseSequence", wide=True),
    TableColumn("TIMESTAMP-TYPE", "timestampType", wide=True),
    TableColumn("TOPIC-ID", "topicId", wide=True),
)
_FIELDS = (
    *("position", "size", "topic", "topicId", "partition", "batchId", "baseOffset", "lastOffset", "records"),
    *("compression", "timestampType", "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch"),
    *("baseSequence", "crc"),
)


def inspect(
    *,
    key: Annotated[str, typer.Argument(metavar="KEY|FILE", help="An object of --store; without it, a file.")],
    places: DisklessOptions,
    view: FindingsView,
) -> ExitCode:
    """Show the record batches of an object (exit 4 if bytes of it are damaged).

    With --control-plane, whose each is and which offsets it was given; without it, the object is walked, which tells
    neither.
    For example: tieredctl diskless inspect prefix/4n3RX4WnSiefm6pycS9bxQ --store s3://bucket
    """
    from tieredctl_inkless.wiring.diskless import inspect_diskless

    bucket, file = places.bucket_if_given(), key
    if is_file := bucket is None:
        if places.control_plane is not None:
            raise TieredctlError(
                ErrorCode.USAGE, "--control-plane knows objects by their keys.", hint="Give --store and a key."
            )
        bucket, key = _folder_of(key)
    source, inspected = inspect_diskless(None if places.control_plane is None else places.place(), bucket, key)
    summary = inspected.summary()
    if is_file and not summary["batches"]:
        hint = "Give an object of diskless topics: it begins with a record batch."
        raise TieredctlError(ErrorCode.USAGE, f"{file} has no sound record batch.", hint=hint)
    listing = Listing("DisklessObject", source, list(inspected.documents()), _COLUMNS, summary, _FIELDS)
    sentences = _sentences(summary, asked=places.control_plane is not None) if view.is_table else ()
    return view.show(listing, inspected.findings, sentences=sentences)


def _folder_of(file: str) -> tuple[StorePlace, str]:
    path = Path(file)
    if not path.is_file():
        raise TieredctlError(
            ErrorCode.PATH_MISSING, f"There is no file {file}", hint="Give --store if it is an object's key."
        )
    return StorePlace(f"file:{path.absolute().parent}"), path.name


def _sentences(summary: Document, *, asked: bool) -> list[str]:
    contents = f"{size_text(summary['size'])}, {counted(summary['batches'], 'record batch', 'record batches')}, "
    contents += f"{counted(summary['records'], 'record')}."
    if not asked:
        return [contents]
    file = summary["file"]
    if file is None:
        return [contents, "The control plane has no file with this key."]
    unreferenced = summary["size"] - summary["referencedBytes"]
    return [contents, f"File {file['fileId']}, {file['state']}; {size_text(unreferenced)} not referenced."]
