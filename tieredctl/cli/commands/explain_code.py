"""`tieredctl explain-code`: what a finding or an error means, and what to do."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Annotated, Any, TextIO

import typer

from tieredctl.cli.arguments import unknown_code
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode
from tieredctl.model.findings import FINDING_KINDS

_PAGE = "findings.md"
_SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##)", re.DOTALL | re.MULTILINE)
_END = "\n## "
_COLUMNS = (TableColumn("CODE", "code"), TableColumn("KIND", "kind"), TableColumn("SEVERITY", "severity"))


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `explain-code` known."""
    del meaning  # its own text says more
    app.command(noun)(explain_code)


def explain_code(
    *, code: Annotated[str, typer.Argument(metavar="CODE", help="A finding's or an error's code.")], view: View
) -> ExitCode:
    """Show what the code of a finding or an error means, and what to do. Also how grave it is.

    For example: tieredctl explain-code object-missing
    """
    code = code.lower()
    items = [*_finding(code), *_error(code)]
    if not items:
        raise unknown_code("finding or error", code, [*FINDING_KINDS, *ErrorCode])

    def write_text(out: TextIO) -> None:
        out.write("\n".join(map(_text, items)))

    return view.show(Listing("CodeMeaning", {"code": code}, items, _COLUMNS, {}, (*items[0],), write_text))


def _finding(code: str) -> list[dict[str, Any]]:
    kind = FINDING_KINDS.get(code)  # type: ignore[call-overload]
    if kind is None:
        return []
    page = files("tieredctl").joinpath(_PAGE).read_text(encoding="utf-8") + _END
    sections = dict(_SECTION.findall(page))
    return [{"code": code, "kind": "finding", "severity": kind.severity.label, "meaning": sections[code].strip()}]


def _error(code: str) -> list[dict[str, Any]]:
    if code not in [*ErrorCode]:
        return []
    error = ErrorCode(code)
    meaning = f"Ends a command with exit code {error.exit_code.value}. {error.hint}"
    return [{"code": code, "kind": "error", "severity": None, "meaning": meaning}]


def _text(item: dict[str, Any]) -> str:
    return f"{item['code']} ({item['kind']})\n\n{item['meaning']}\n"
