"""`tieredctl store …`: the local files that brokers and remote-log stores leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.file_description import describe
from tieredctl.cli.findings_table import FINDING_COLUMNS, FINDING_FIELDS
from tieredctl.cli.options import (
    BootstrapServer,
    CommandConfig,
    Export,
    LayoutName,
    LayoutOptions,
    LogDirs,
    MetricsFile,
    Output,
    Quiet,
    Store,
    StoreOptions,
)
from tieredctl.cli.outcome import finding_documents, finish, say_error
from tieredctl.cli.output import Item, Listing, OutputFormat, render
from tieredctl.cli.wiring import AUTO, open_remote, open_stream
from tieredctl.errors import DecodeError, ExitCode, TieredctlError, worst
from tieredctl.ops.inspection import FileKind, inspect

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    app.add_typer(_commands, name=noun, help=meaning)


_TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)
_FILE_FIELDS = ("path", "fileKind", "fields", "entries")


@_commands.command("inspect")
def inspect_files(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files of a broker or of a remote-log store.")],
    kind: Annotated[
        FileKind | None, typer.Option(help="What the files are, where their names and contents do not tell.")
    ] = None,
    output: Output = OutputFormat.TABLE,
) -> ExitCode:
    """What a file holds: index, log, snapshot, checkpoint, properties."""
    inspection = _Inspection(paths, kind)
    if output in _TABLES:
        inspection.describe(wide=output is OutputFormat.WIDE)
    else:
        source = {"kind": "files", "paths": [str(path) for path in paths]}
        items = inspection.documents()
        render(Listing("InspectedFiles", source, items, (), inspection.summary, _FILE_FIELDS), output, sys.stdout)
    sys.stdout.flush()
    for error in inspection.errors.values():
        say_error(error)
    return worst(*(error.exit_code for error in inspection.errors.values()))


class _Inspection:
    """Several files, of which one that is damaged keeps none of the others from being shown."""

    def __init__(self, paths: Sequence[Path], kind: FileKind | None) -> None:
        self._paths = paths
        self._kind = kind
        self.errors: dict[Path, TieredctlError] = {}

    def documents(self) -> Iterator[Item]:
        for path in self._paths:
            try:
                document = inspect(path, self._kind).document()
            except TieredctlError as error:
                self.errors[path] = error
            else:
                yield document
                self._note_damage(path, document["entries"])

    def describe(self, *, wide: bool) -> None:
        for number, path in enumerate(self._paths):
            try:
                file = inspect(path, self._kind)
                sys.stdout.write("\n" if number else "")
                describe(file, sys.stdout, wide=wide)
            except TieredctlError as error:
                self.errors[path] = error
