"""How every command ends: the result on stdout, what was found on stderr, and the one exit code of all that."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TextIO, cast

from tieredctl.cli import PROGRAM, running_command
from tieredctl.cli.bar import make_room
from tieredctl.cli.completion.noticed_names import notice_findings, noticed
from tieredctl.cli.line_breaks import broken
from tieredctl.cli.output import Listing, OutputFormat, render
from tieredctl.cli.terminal import width_of
from tieredctl.errors import ExitCode, TieredctlError, worst
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.model.printable import printable
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance
from tieredctl.process.run_metrics import run_metrics

_DOCUMENTS = (OutputFormat.JSON, OutputFormat.YAML)


def finish(
    listing: Listing,
    output: OutputFormat,
    findings: Sequence[Finding],
    *,
    quiet: bool = False,
    listed: Sequence[Finding] = (),
    besides: ExitCode | Callable[[], ExitCode] = ExitCode.CLEAN,
    sentences: Iterable[str] = (),
    tolerance: Tolerance = NOTHING_TOLERATED,
) -> ExitCode:
    """Shows a listing and says the findings that belong to it; gives the exit code of all there is: the gravest of
    these findings, of those that the listing shows itself (`listed`), and of what is known `besides`, which is asked
    when the items were read. The run's metrics have the same.

    `sentences` are printed before the listing, after what makes it incomplete.
    `findings` may grow while the listing's items are read: it is looked at afterwards. A reader that has gone, such as
    `head`, takes nothing from what was found until then; reading goes on where what is found is the answer, and for
    metrics.
    """
    speaks = output not in _DOCUMENTS and not quiet
    first = {told(finding) for finding in say_what_is_incomplete(findings, tolerance)} if speaks else set()
    if output in _DOCUMENTS:
        listing = _with_findings(listing, findings)
    if tolerance.ignored:
        listing = _with_ignored(listing, (findings, listed), tolerance)
    for sentence in () if quiet else sentences:
        say(sentence)
    listing = replace(listing, items=noticed(listing.items))
    metrics = run_metrics.get()
    is_measured = metrics.are_of(running_command.get())
    left_out: Sequence[str] = ()
    try:
        out = cast(TextIO, _ReadToEnd(sys.stdout)) if listing.reads_on or is_measured else sys.stdout
        left_out = render(listing, output, out, width_of(sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    if left_out and not quiet:
        say(f"Left out, since the terminal is narrow: {', '.join(left_out)}. -o wide shows all columns.")
    if speaks:
        say_findings((finding for finding in findings if told(finding) not in first), tolerance)
    notice_findings(findings)
    everything = [*findings, *listed]
    if is_measured:
        metrics.note(listing.current_summary(), everything)
    return worst(exit_code_of(everything, tolerance), besides() if callable(besides) else besides)


class _ReadToEnd:
    """A stream into which all is written, though nobody reads it any more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        """Whether it is a terminal, its encoding and so on: as of the stream."""
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except BrokenPipeError:
            discard(self._out)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        rest = iter(lines)
        try:
            self._out.writelines(rest)
        except BrokenPipeError:
            discard(self._out)
            self._out.writelines(rest)


def _with_findings(listing: Listing, findings: Sequence[Finding]) -> Listing:
    """The same, and what was found in its summary, where that has no findings of its own: nothing else says why the
    exit code is not 0."""

    def summary() -> Mapping[str, Any]:
        fields = listing.current_summary()
        if "findings" in fields or not findings:
            return fields
        return {**fields, "findings": finding_documents(findings)}

    return replace(listing, summary=summary)


def _with_ignored(listing: Listing, findings: Sequence[Sequence[Finding]], tolerance: Tolerance) -> Listing:
    """The same, and how many findings are ignored in its summary."""

    def summary() -> dict[str, Any]:
        fields = listing.current_summary()
        return {**fields, "ignored": sum(one.is_ignored(tolerance) for one in chain.from_iterable(findings))}

    return replace(listing, summary=summary)


def told(finding: Finding) -> tuple[str, str, str]:
    """What people read of it."""
    return finding.code, finding.subject, finding.message


def say_what_is_incomplete(findings: Iterable[Finding], tolerance: Tolerance = NOTHING_TOLERATED) -> list[Finding]:
    """Says, before any answer, what already makes it incomplete, and that it cannot be ignored; returns these
    messages."""
    incomplete = [finding for finding in findings if finding.makes_incomplete]
    say_findings(incomplete, tolerance)
    return incomplete


def say_findings(findings: Iterable[Finding], tolerance: Tolerance = NOTHING_TOLERATED) -> None:
    """Findings above info, on stderr, by severity and code; and how many are ignored."""
    reported = (one for one in findings if one.severity is not Severity.INFO or one.is_ignored(tolerance))
    first = next(reported, None)
    make_room()
    if first is not None:
        from tieredctl.cli.findings.finding_report import FindingReport  # most commands find nothing

        _on_stderr(partial(FindingReport(tolerance=tolerance).write, chain([first], reported)))


def say_cause(findings: Iterable[Finding], tolerance: Tolerance = NOTHING_TOLERATED) -> None:
    """Only the line that counts what needs attention and names the cause, on stderr."""
    from tieredctl.cli.findings.finding_report import FindingReport

    _on_stderr(partial(FindingReport(tolerance=tolerance).write_cause, findings))


def _on_stderr(write: Callable[[TextIO], None]) -> None:
    """Where nobody can hear it, it is lost: it decides nothing."""
    make_room()
    try:
        write(sys.stderr)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def say_error(error: TieredctlError) -> None:
    """What a tired operator reads: a sentence on stderr, and what to do next."""
    say(f"{PROGRAM}: {printable(error.sentence)}")
    if error.hint:
        say(f"  {printable(error.hint)}")


def say(text: str, to: TextIO | None = None) -> None:
    """A line or several on stderr, or `to` another stream. Where nobody can hear it, it is lost: it decides nothing."""
    stream = sys.stderr if to is None else to
    make_room()
    try:
        width = width_of(stream)
        lines = [line for one in text.split("\n") for line in broken(printable(one), width)]
        print("\n".join(lines), file=stream, flush=True)
    except OSError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Keeps Python from complaining, at its end, that what a stream still holds can't be written."""
    with suppress(io.UnsupportedOperation), open(os.devnull, "wb") as nowhere:  # one in memory has no descriptor
        os.dup2(nowhere.fileno(), stream.fileno())


def finding_documents(findings: Iterable[Finding]) -> list[dict[str, object]]:
    """Findings for a summary."""
    return [finding.document() for finding in findings]
