"""How every command ends: the result on stdout, what was found on stderr, metrics in a file, an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from tieredctl.cli import PROGRAM, running_command
from tieredctl.cli.output import Listing, OutputFormat, printable, render
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.model.findings import Finding, Severity, exit_code_of

_MOST_LINES = 20
_DOCUMENTS = (OutputFormat.JSON, OutputFormat.YAML)


def finish(
    listing: Listing,
    output: OutputFormat,
    findings: Sequence[Finding],
    *,
    quiet: bool = False,
    metrics_file: Path | None = None,
    otherwise: ExitCode = ExitCode.CLEAN,
    sentences: Iterable[str] = (),
) -> ExitCode:
    """Shows a listing and says the findings that belong to it; gives their exit code, or `otherwise` without any.

    `sentences` are printed before the listing, after what makes it incomplete.
    `findings` may grow while the listing's items are read: it is looked at afterwards. A reader that has gone, such as
    `head`, takes nothing from the exit code.
    """
    speaks = output not in _DOCUMENTS and not quiet
    first = say_what_is_incomplete(findings) if speaks else []
    for sentence in () if quiet else sentences:
        say(sentence)
    try:
        render(listing, output, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    if speaks:
        say_findings(finding for finding in findings if finding not in first)
    code = exit_code_of(findings) or otherwise
    if metrics_file is not None:
        from tieredctl.wiring.metrics import metrics_text, write_metrics

        summary = listing.summary() if callable(listing.summary) else listing.summary
        write_metrics(metrics_file, metrics_text(running_command.get(), summary, findings, code))
    return code


def say_what_is_incomplete(findings: Iterable[Finding]) -> list[Finding]:
    """Says, before any answer, what already makes it incomplete; returns these messages."""
    said = [finding for finding in findings if finding.kind.incomplete and finding.severity is not Severity.INFO]
    say_findings(said)
    return said


def say_findings(findings: Iterable[Finding]) -> None:
    """A line for each finding above info, on stderr; many of them are counted instead."""
    grave = [finding for finding in findings if finding.severity is not Severity.INFO]
    for finding in grave[:_MOST_LINES]:
        said = printable(f"{finding.code}: {finding.subject}: {finding.message}")  # one line, whatever is in it
        say(f"{finding.severity.label}: {said}")
    if len(grave) > _MOST_LINES:
        say(f"… and {len(grave) - _MOST_LINES} more; -o json has them all")


def say_error(error: TieredctlError) -> None:
    """What a tired operator reads: a sentence on stderr, and what to do next."""
    sentence = error.message if error.message.endswith((".", "!", "?")) else f"{error.message}."
    say(f"{PROGRAM}: {printable(sentence)}")
    if error.hint:
        say(f"  {printable(error.hint)}")


def say(text: str) -> None:
    """A line or several on stderr. Where nobody can hear it, it is lost: it decides nothing."""
    try:
        print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Keeps Python from complaining, at its end, that what a stream still holds can't be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def finding_documents(findings: Iterable[Finding]) -> list[dict[str, object]]:
    """Findings for a summary."""
    return [finding.document() for finding in findings]
