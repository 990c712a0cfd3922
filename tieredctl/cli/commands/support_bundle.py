"""`tieredctl support-bundle`: what somebody else needs to help, in one file without secrets."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl import __version__
from tieredctl.cli.arguments import file_or_folder, kafka_id
from tieredctl.cli.options import DryRun
from tieredctl.cli.outcome import discard
from tieredctl.cli.places import MetadataOptions, RemoteOptions, ResultOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.terminal import demand_stdout
from tieredctl.cli.trouble.bundle import (
    MANIFEST,
    Part,
    PartRow,
    manifest_of,
    pack_bundle,
    without_names,
    without_secrets,
    write_bundle,
)
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.status.last_results import demand_result, result_files
from tieredctl.process.crash_file import crash_files, versions
from tieredctl.process.redaction import remember_secrets
from tieredctl.process.replaced_file import demand_replaceable
from tieredctl.wiring.cluster_settings import settings_that_matter
from tieredctl.wiring.places import metadata_was_read

_CRASHES = "crashes/"
_STDOUT = Path("-")
_MOST_CRASHES = 5
_LARGEST_FILE = 16 << 20
_WHOLE = (ExitCode.CLEAN, ExitCode.FINDINGS, ExitCode.CORRUPTION)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `support-bundle` known."""
    del meaning  # its own text says more
    app.command(noun)(support_bundle)


def support_bundle(
    *,
    to: Annotated[
        Path, typer.Option(metavar="FILE", parser=file_or_folder, help="The bundle, a .tar.gz; - is standard output.")
    ],
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    segment_id: Annotated[
        list[str] | None,
        typer.Option(metavar="SEGMENT-ID", parser=kafka_id, help="Add this segment's events; repeat it for several."),
    ] = None,
    results: ResultOptions,
    hide_names: Annotated[bool, typer.Option("--hide-names", help="Replace topic names by hashes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dry_run: DryRun = False,
    view: ProgressView,
) -> ExitCode:
    """Write one file for whoever is to help: versions, settings, findings, statistics. It also has the events of named
    segments, earlier results and crash files, but no records and no secrets; manifest.json in it says what is inside.

    Exit 5 if something could not be had; the manifest names it.

    For example: tieredctl support-bundle --to bundle.tar.gz --bootstrap-server broker:9092
    """
    if to != _STDOUT:
        demand_replaceable(to, force=force, dry_run=dry_run)
    elif not dry_run:
        demand_stdout("the bundle")
        _demand_no_terminal()
    if metadata_options.are_given:
        metadata_options.place()  # which refuses options that exclude each other
    remember_secrets(os.environ)
    parts: list[Part] = []
    names: set[str] = set()
    with _names_noted(names):
        for make in _makers(metadata_options, remote_options, segment_id or (), results.paths(), names):
            parts.append(make())
            view.say(f"Gathered {parts[-1].name}.")
    parts = without_secrets(parts)
    if hide_names:
        parts = without_names(parts, names)
    manifest = manifest_of(parts, hides_names=hide_names)
    lacking = [part for part in parts if part.problem is not None and not part.is_withheld]
    code = ExitCode.INCOMPLETE if lacking else ExitCode.CLEAN
    if to == _STDOUT and not dry_run:
        _print_bundle(parts, manifest)
        view.say(*(f"{part.name}: {part.problem}" for part in parts if part.problem is not None))
        return code
    if to != _STDOUT:
        write_bundle(to, parts, manifest, force=force, dry_run=dry_run)
    if dry_run:
        view.say(f"Would write {'the bundle' if to == _STDOUT else to}, with this inside:")
    else:
        view.say(f"Wrote {to}. Look at what is inside before you send it; {MANIFEST} in it says the same as this:")
    summary = {"to": str(to), "parts": len(parts), "lacking": len(lacking), "dryRun": dry_run}
    source = {"kind": "bundle", "path": str(to)}
    listing = result_listing("SupportBundle", source, PartRow, [part.row() for part in parts], summary)
    return view.show(listing, code=code)


def _demand_no_terminal() -> None:
    if sys.stdout.isatty():
        message = "A bundle is not written to a terminal."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name a file with --to, or redirect standard output.")


def _print_bundle(parts: Sequence[Part], manifest: Mapping[str, Any]) -> None:
    try:
        pack_bundle(sys.stdout.buffer, parts, manifest)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader that has gone, such as `tar t | head`
        discard(sys.stdout)


def _makers(
    metadata: MetadataOptions,
    remote: RemoteOptions,
    segment_ids: Sequence[str],
    results: Sequence[Path],
    names: set[str],
) -> Iterator[Callable[[], Part]]:
    """Each makes a part. Adds the cluster's topics to `names`."""
    yield partial(Part, "versions.json", "releases of tieredctl, Python and libraries", _versions())
    cluster, store = _cluster_words(metadata), _store_words(remote)
    shown = "the chosen context, and where each of its values comes from"
    yield partial(_answer, "context.json", shown, ["context", "show", *cluster, *store])
    if metadata.bootstrap_server is not None:
        yield partial(_settings, metadata, names)
        yield partial(_answer, "doctor.json", "what doctor finds", ["doctor", *cluster])
    if metadata.are_given:
        words = _metadata_words(metadata)
        what = "what each metadata partition has, and what is wrong with it"
        yield partial(_answer, "metadata-stats.json", what, ["metadata", "stats", *words])
        what = "copies and deletions that never finished"
        yield partial(_answer, "metadata-stuck.json", what, ["metadata", "stuck", *words])
        for one in segment_ids:
            asked = ["metadata", "history", *words, "-o", "json", "--", one]
            yield partial(_answer, f"history/{one}.json", "all events of a segment", asked)
    for number, path in enumerate(chain.from_iterable(map(_files, results))):
        yield partial(_result, f"results/{number}-{path.name}", "an earlier result", path)
    for path in crash_files()[-_MOST_CRASHES:]:
        yield partial(_file, f"{_CRASHES}{path.name}", "an unexpected error", path)


def _answer(name: str, what: str, words: Sequence[str]) -> Part:
    """What one of tieredctl's own commands shows; or why it does not."""
    from tieredctl.cli.main import error_of, invoke

    out, err = io.StringIO(), io.StringIO()
    asked = list(words) if "-o" in words else [*words, "-o", "json"]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = ExitCode(invoke(asked))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are gathered
        return Part(name, what, None, error_of(error).message)
    problem = None if code in _WHOLE else f"It is incomplete (exit code {code.value}). {err.getvalue().strip()}".strip()
    return Part(name, what, out.getvalue() or None, problem)


@contextmanager
def _names_noted(names: set[str]) -> Iterator[None]:
    """Adds the topics of all metadata that is read meanwhile."""
    before = metadata_was_read.get()

    def note(stream: EventStream) -> None:
        names.update(one.topic for one in stream.partitions)
        if before is not None:
            before(stream)

    token = metadata_was_read.set(note)
    try:
        yield
    finally:
        metadata_was_read.reset(token)


def _settings(metadata: MetadataOptions, names: set[str]) -> Part:
    what = "settings of brokers and tiered topics that decide about tiered storage"
    try:
        document, every = settings_that_matter(metadata.cluster().place())
        names.update(every)
    except TieredctlError as error:
        return Part("settings.json", what, None, error.message)
    return Part("settings.json", what, json.dumps(document, indent=2) + "\n")


def _files(result: Path) -> list[Path]:
    """The files of a result; itself where it has none, of which the manifest then says why it cannot be read."""
    try:
        return result_files(result)
    except (OSError, TieredctlError):
        return [result]


def _result(name: str, what: str, path: Path) -> Part:
    """A file of another kind too, as it may be a damaged result; then with a problem."""
    part = _file(name, what, path)
    if part.problem is None:
        try:
            demand_result(path)
        except TieredctlError as error:
            part = replace(part, problem=error.message)
    return part


def _file(name: str, what: str, path: Path) -> Part:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        return Part(name, what, None, f"{path} cannot be read: {error.strerror}.")
    if len(data) > _LARGEST_FILE:
        return Part(name, what, None, f"{path} is larger than {_LARGEST_FILE >> 20} MiB.")
    return Part(name, what, data.decode(errors="backslashreplace"))


def _versions() -> str:
    document = {
        "tieredctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": list(versions()),
    }
    return json.dumps(document, indent=2) + "\n"


def _cluster_words(metadata: MetadataOptions) -> list[str]:
    return [
        *_option_words("--bootstrap-server", metadata.bootstrap_server),
        *_option_words("--command-config", metadata.command_config),
    ]


def _metadata_words(metadata: MetadataOptions) -> list[str]:
    words = _cluster_words(metadata)
    for folder in metadata.log_dir or ():
        words += ["--log-dir", str(folder)]
    words += [
        *_option_words("--export", metadata.export),
        *_option_words("--metadata-source", metadata.metadata_source),
    ]
    for option in metadata.metadata_source_option or ():
        words += ["--metadata-source-option", option]
    return words


def _store_words(remote: RemoteOptions) -> list[str]:
    if remote.store is None:
        return []
    words = ["--store", remote.store, "--layout", remote.layout]
    for option in remote.store_option or ():
        words += ["--store-option", option]
    for option in remote.layout_option or ():
        words += ["--layout-option", option]
    return words


def _option_words(option: str, value: object) -> list[str]:
    return [] if value is None else [option, str(value)]
