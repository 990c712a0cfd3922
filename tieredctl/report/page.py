"""A page: what is wrong first, then plots, then tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from tieredctl.model.printable import printable
from tieredctl.report.plot import Plot
from tieredctl.report.table import FIRST_ROWS, MOST_ROWS, Table

MARK = "<!DOCTYPE html>\n<!-- A page by tieredctl. -->\n"
"""What every page begins with."""


@dataclass(frozen=True, slots=True)
class FoundThing:
    """A finding of a group: a line, and its evidence as JSON."""

    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """Findings of one severity and code: `summary` is of all `count` of them, `first` are some, `about` names what the
    first few are about, `remedy` is a command to paste, or words."""

    severity: str
    code: str
    summary: str
    count: int
    remedy: str
    first: Sequence[FoundThing]
    about: str = ""

    @property
    def is_command(self) -> bool:
        """Whether the remedy is to be typed."""
        return self.remedy.startswith(("tieredctl ", "kafka-", "ls "))


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on a page. All texts may come from outside."""

    title: str
    """Such as `verify`: the command's words."""
    verdict: str
    """The first line: counts and cause, or that nothing was found."""
    severity: str
    """The gravest of what was found: `good` where nothing was."""
    headline: str
    """What the command says of its whole result; may be empty."""
    facts: Sequence[tuple[str, str]]
    """First the command; then when, which cluster, which store, and so on."""
    groups: Sequence[FoundGroup]
    unknown: Sequence[str]
    """What was not looked at, and what is not counted."""
    plots: Sequence[Plot]
    tables: Sequence[Table]


def html_of(page: Page) -> str:
    """The page as one file that asks nothing of any network. Raises ImportError without the extra `report`."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, script = _text("page.css"), _text("page.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["printable"] = printable
    ours = f"style-src {_hash(style)}; script-src {_hash(script)}"
    policy = f"default-src 'none'; {ours}; base-uri 'none'; form-action 'none'"
    body = environment.from_string(_text("page.html.j2")).render(
        page=page,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        svgs=[Markup(plot.svg) for plot in page.plots],
        json=[Markup(table.json()) for table in page.tables],
        rows_at_a_time=FIRST_ROWS,
        most_rows=MOST_ROWS,
    )
    return MARK + body


def _text(name: str) -> str:
    return (files("tieredctl.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
