"""`tieredctl store …`: local files that brokers and remote-log stores leave, and one remote store beside another."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import given_path, pairs
from tieredctl.cli.commands.store_copy import compare, copy
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.file_description import describe
from tieredctl.cli.options import Output, StoreOptions
from tieredctl.cli.outcome import discard, say_error
from tieredctl.cli.output import Item, Listing, OutputFormat, render
from tieredctl.cli.places import MetadataOptions, RemoteOptions
from tieredctl.cli.view import FindingListView, Talk
from tieredctl.errors import DecodeError, ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.ops.inspection.inspect import FileKind, InspectedFile, inspect
from tieredctl.ops.store_check.check import StoreCheck
from tieredctl.process.progress import note_more
from tieredctl.wiring.store_check import STDIN, check_local_stores, local_path

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


_FILE_FIELDS = ("path", "fileKind", "fields", "entries")


@_commands.command("inspect")
def inspect_files(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Files of a broker or of a remote log store, or URLs of objects in a store; - reads what is piped in, "
            "which has no name: give --kind where its first bytes do not show what it is.",
        ),
    ],
    kind: Annotated[
        FileKind | None,
        typer.Option(
            metavar="KIND",
            help="What the files are, if neither names nor first bytes show it: "
            f"{', '.join(each.value for each in FileKind)}.",
        ),
    ] = None,
    store_option: StoreOptions = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Show what files hold: indexes, logs, snapshots, checkpoints, properties.

    For example: tieredctl store inspect /var/lib/kafka/orders-0/00000000000000000000.index
    """
    del talk  # apart from the answer, only errors are printed here
    for path in paths:
        given_path(path)
    if paths.count(STDIN) > 1:
        raise TieredctlError(ErrorCode.USAGE, "What is piped in can be read once: give - once.")
    with ExitStack() as copies:
        inspection = _Inspection(paths, kind, pairs("--store-option", store_option), copies)
        try:
            inspection.show(output)
            sys.stdout.flush()
        except BrokenPipeError:
            discard(sys.stdout)
    for error in inspection.errors.values():
        say_error(error)
    return worst(*(error.exit_code for error in inspection.errors.values()))


class _Inspection:
    """Several files; a damaged one does not keep the others from being shown."""

    def __init__(
        self, paths: Sequence[str], kind: FileKind | None, store_options: Mapping[str, str], copies: ExitStack
    ) -> None:
        self._paths = paths
        self._kind = kind
        self._store_options = store_options
        self._copies = copies
        self.errors: dict[str, TieredctlError] = {}

    def show(self, output: OutputFormat) -> None:
        """Writes each file that can be read, and remembers why the others can't."""
        if output.is_table:
            self._describe(wide=output is OutputFormat.WIDE)
        else:
            source = {"kind": "files", "paths": list(self._paths)}
            listing = Listing("InspectedFiles", source, self._documents(), (), self._summary, _FILE_FIELDS)
            render(listing, output, sys.stdout)

    def _documents(self) -> Iterator[Item]:
        for path in self._paths:
            try:
                document = self._open(path).document()
            except TieredctlError as error:
                self.errors[path] = error
            else:
                yield document

    def _describe(self, *, wide: bool) -> None:
        for number, path in enumerate(self._paths):
            try:
                file = self._open(path)
                sys.stdout.write("\n" if number else "")
                describe(file, sys.stdout, wide=wide)
            except TieredctlError as error:
                self.errors[path] = error

    def _summary(self) -> dict[str, Any]:
        """The progress so far."""
        errors = [
            {"path": path, "code": error.code.value, "message": error.message} for path, error in self.errors.items()
        ]
        return {"files": len(self._paths), "errors": errors}

    def _open(self, path: str) -> InspectedFile:
        local = local_path(path, self._store_options, self._copies)
        file = inspect(local, self._kind, called=_displayed(path))
        return replace(file, path=path, entries=self._watched(path, file.entries))

    def _watched(self, path: str, entries: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The same entries; a damaged batch among them makes the file a damaged one, though all of it is shown."""
        for entry in entries:
            note_more("entries read", 1)
            if entry.get("isValid", True) is False and path not in self.errors:
                message = f"{_displayed(path)} has a damaged batch: {entry['reason']}"
                self.errors[path] = DecodeError(message, entry["position"])
            yield entry


def _displayed(path: str) -> str:
    """What messages call a file."""
    return "stdin" if path == STDIN else path


@_commands.command("check")
def check(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", parser=given_path, help="Brokers' log directories."),
        Role.ELSEWHERE,
    ],
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    view: FindingListView,
) -> ExitCode:
    """Check that the local stores agree with each other and with the metadata topic.

    The metadata is read from DIR too, unless another option says where it is. With --store,
    cached indexes are compared with the remote ones.

    For example: tieredctl store check /var/lib/kafka --store s3://kafka-tiered
    """
    metadata = metadata_options.place()
    remote = remote_options.place_if_given()
    result, source, _ = check_local_stores(directories, metadata, remote)
    return view.show_findings("StoreCheck", source, result.findings, result.summary(), _headline(result))


def _headline(result: StoreCheck) -> str:
    what = f"{counted(result.partitions, 'partition')}, {counted(result.snapshots, 'snapshot')}"
    what += f", {counted(result.cached_files, 'cached index file')}"
    return f"Checked {what}: {counted(len(result.findings), 'finding') if result.findings else 'all agree'}."


_commands.command("compare")(compare)
_commands.command("copy")(copy)
