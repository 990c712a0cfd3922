"""`tieredctl demo`: the main job on a real captured cluster, with the real commands and their real output."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from tieredctl.cli.main import invoke
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.demo.demo_cluster import FAULTS, unpack_cluster

_WIDTH_WITHOUT_TERMINAL = 100
_VERIFY = "tieredctl verify --level full --log-dir data --store file:remote/kafka-tiered-storage"
# Whether a copy is stuck depends on the time: the capture's own day, so that it is the same on any other.
_VERIFY_DAMAGED = f"{_VERIFY} --now 2026-11-21T12:00Z"
_BY_SPARK = "--engine spark"

OWN_CLUSTER_COMMANDS = (
    "tieredctl metadata segments --log-dir LOG-DIR --topic TOPIC",
    "tieredctl metadata stuck --older-than 1h --bootstrap-server HOST:PORT",
    "tieredctl metadata lookup TOPIC:PARTITION --epoch EPOCH --offset OFFSET --log-dir LOG-DIR",
    "tieredctl verify --log-dir LOG-DIR --store file:STORE-DIR",
    "tieredctl verify --level full --subset 1/30 --log-dir LOG-DIR --store file:STORE-DIR",
)
"""What to type next: words in capitals are the reader's to fill in."""


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `demo` known."""
    del meaning  # its own text says more
    app.command(noun)(demo)


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the files here, to try commands on them."),
    ] = None,
) -> ExitCode:
    """See it work on a real captured cluster; no server needed. Verifies it, damages a copy, finds each fault.

    For example: tieredctl demo --keep /tmp/tieredctl-demo
    """
    with _no_variables(), _folder(keep) as folder:
        sound, damaged = folder / "sound", folder / "damaged"
        unpack_cluster(sound)
        _say_what_this_is(sound)
        with chdir(sound):
            _show_metadata()
            _show_that_it_is_sound()
        shutil.copytree(sound, damaged)
        with chdir(damaged):
            _damage(damaged)
            document = _find_faults()
            _find_them_on_spark(document)
        _say_what_is_next(folder if keep else None)
    return ExitCode.CLEAN


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="tieredctl-demo-") as folder:
            yield Path(folder)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise TieredctlError(
            ErrorCode.USAGE, f"{keep} is not an empty folder.", hint="Name a folder that is new or empty."
        )
    keep.mkdir(exist_ok=True)
    yield keep.absolute()


def _say_what_this_is(cluster: Path) -> None:
    _print_wrapped(
        "tieredctl compares what is in Kafka's remote storage with what Kafka's metadata promises. Here it does so "
        "for what a real Kafka 4.3.1 broker left: `data`, its log directory, and `remote`, the store that it copied "
        "segments to.",
        indent=0,
    )
    print(f"\n$ cd {shlex.quote(str(cluster))}")


def _show_metadata() -> None:
    _title("1. What the broker wrote to __remote_log_metadata, as Kafka's formatter prints it")
    _demand(
        ExitCode.CLEAN, _run("tieredctl metadata format --log-dir data --metadata-partition 1", 2, whole_lines=True)
    )
    _title("2. What that amounts to: the segments, and the state of each")
    _demand(ExitCode.CLEAN, _run("tieredctl metadata segments --log-dir data --topic orders7", 5))


def _show_that_it_is_sound() -> None:
    _title("3. Is it complete and intact? This reads every byte")
    _demand(ExitCode.CLEAN, _run(_VERIFY, show_exit_code=True))


def _damage(cluster: Path) -> None:
    _title(f"4. Now a copy, with {len(FAULTS)} faults put into it")
    print("$ cp -r ../sound ../damaged; cd ../damaged")
    for fault in FAULTS:
        fault.inject(cluster)


def _find_faults() -> dict[str, Any]:
    """The output of `-o json`."""
    _demand(ExitCode.CORRUPTION, _run(_VERIFY_DAMAGED, show_exit_code=True))
    _title("The same as data, next to what was done:")
    document = _document(_VERIFY_DAMAGED, Path("found.json"))
    print()
    findings: list[dict[str, Any]] = document["items"]
    reported = 0
    for fault in FAULTS:
        finding = next(filter(fault.is_told_by, findings), None)
        reported += finding is not None
        _print_wrapped(f"  done   {fault.done}", indent=9)
        _print_wrapped(f"  found  {_place(finding) if finding else 'nothing'}", indent=9)
    if reported < len(FAULTS) or len(findings) > reported:
        what = (
            f"{reported} of {len(FAULTS)} faults were found, and {counted(len(findings) - reported, 'other finding')}."
        )
        raise TieredctlError(ErrorCode.DEMO_FAILED, what)
    _say("All were found, and nothing else.")
    return document


def _place(finding: dict[str, Any]) -> str:
    evidence = finding["evidence"]
    position = f" at byte {evidence['position']}" if evidence.get("position") is not None else ""
    offsets = ", offsets {}..{} at risk".format(*evidence["offsets"]) if evidence.get("offsets") else ""
    return f"{finding['severity']} {finding['code']}{position}{offsets}"


def _find_them_on_spark(document: dict[str, Any]) -> None:
    _title("5. The same on Spark, as for a store too large for one machine (takes some seconds)")
    try:
        by_spark = _document(f"{_VERIFY_DAMAGED} {_BY_SPARK}", Path("found-by-spark.json"))
    except TieredctlError as error:
        if error.code is not ErrorCode.MISSING_EXTRA:
            raise
        _say(f"Skipped, as it needs Java 17 and `pip install tieredctl-spark`: {error.message}")
        return
    if by_spark["items"] != document["items"] or by_spark["summary"] != document["summary"]:
        raise TieredctlError(ErrorCode.DEMO_FAILED, "Spark's findings are not those of the local engine.")
    counts = "{segments} segments, {batches} batches, {records} records, ".format(**document["summary"])
    counts += size_text(document["summary"]["bytesRead"])
    _say(f"Equal to found.json, row for row: {len(FAULTS)} findings in {counts}.")


def _say_what_is_next(kept: Path | None) -> None:
    _title("6. On your own cluster")
    for command in OWN_CLUSTER_COMMANDS:
        print(f"  {command}")
    _say("These only read. LOG-DIR is a broker's log directory; each command has --help.")
    if kept is None:
        _say("`tieredctl demo --keep DIR` leaves the files for you to try on.")
    else:
        _say(f"The files stay in {kept}: `cd` to sound or damaged there, and try any command from above.")


def _run(
    command: str, most_lines: int | None = None, *, whole_lines: bool = False, show_exit_code: bool = False
) -> int:
    """Shows a command line, runs it, and shows what it says: its exit code. On a terminal, rows too long for it are
    cut unless `whole_lines` are to be seen."""
    _prompt(command)
    code, out, talk = _output_of(command)
    for line in talk.splitlines():
        _print_wrapped(line)
    lines = out.splitlines()
    for line in lines[:most_lines]:
        if whole_lines:
            _print_wrapped(line)
        else:
            print(_cut(line))
    if most_lines is not None and len(lines) > most_lines:
        print(f"... and {len(lines) - most_lines} more lines")
    if show_exit_code:
        print(f"$ echo $?\n{code}")
    return code


def _document(command: str, file: Path) -> dict[str, Any]:
    """What a command line that finds corruption says with `-o json`, which goes to a file."""
    as_json = f"{command} -o json --quiet"
    _prompt(f"{as_json} > {file}")
    code, out, _ = _output_of(as_json)
    _demand(ExitCode.CORRUPTION, code)
    file.write_text(out, encoding="utf-8")
    document: dict[str, Any] = json.loads(out)
    return document


@contextmanager
def _no_variables() -> Iterator[None]:
    """Without the variables that would change what the commands here do."""
    kept = dict(os.environ)
    for name in [*kept]:
        if name.startswith("TIEREDCTL_") and name not in ("TIEREDCTL_CONFIG", "TIEREDCTL_PLAN_KEY_FILE"):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _output_of(command: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    out, talk = io.BytesIO(), io.StringIO()
    stream = io.TextIOWrapper(out, encoding="utf-8", errors="backslashreplace", write_through=True)
    with redirect_stdout(stream), redirect_stderr(talk):
        code = invoke(shlex.split(command)[1:])
    return code, out.getvalue().decode("utf-8"), talk.getvalue()


def _demand(expected: ExitCode, code: int) -> None:
    if code != expected:
        raise TieredctlError(ErrorCode.DEMO_FAILED, f"The exit code should be {int(expected)}, and is {code}.")


def _title(text: str) -> None:
    _say(text)
    print()


def _say(text: str) -> None:
    print()
    _print_wrapped(text, indent=0)


def _prompt(command: str) -> None:
    """A command line as it can be typed, broken where a shell lets it be."""
    lines = textwrap.wrap(
        command, _width() - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    print("$ " + " \\\n".join(lines), flush=True)


def _print_wrapped(line: str, indent: int = 4) -> None:
    wrapped = textwrap.wrap(line, _width(), subsequent_indent=" " * indent, break_on_hyphens=False)
    print("\n".join(wrapped), flush=True)


def _cut(line: str) -> str:
    width = _width()
    return f"{line[: width - 3]}..." if len(line) > width and sys.stdout.isatty() else line


def _width() -> int:
    return max(40, shutil.get_terminal_size((_WIDTH_WITHOUT_TERMINAL, 24)).columns)
