"""A benchmark's outcome: a table for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import Contender


@dataclass(frozen=True)
class Row:
    """A contender against the first of its group. `ratio` is how many times less it took; `goal` is its target."""

    group: str
    name: str
    measured: str
    median: float
    least: float
    most: float
    unit: str
    ratio: float | None
    goal: float | None
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached; None where there is none."""
        return None if self.goal is None or self.ratio is None else self.ratio >= self.goal


def compared(
    group: str, contenders: list[Contender], what: str, unit: str, goals: dict[str, float], notes: dict[str, str]
) -> list[Row]:
    """Rows for contenders against the first of them."""
    anchor = contenders[0].median(what)
    rows = []
    for contender in contenders:
        least, most = contender.spread(what)
        ratio = None if contender is contenders[0] else anchor / contender.median(what)
        goal, note = goals.get(contender.name), notes.get(contender.name, "")
        rows.append(Row(group, contender.name, what, contender.median(what), least, most, unit, ratio, goal, note))
    return rows


def within(group: str, contender: Contender, what: str, unit: str, limit: float, note: str = "") -> Row:
    """A row for a contender against a limit; `ratio` is how many times it fits into the limit."""
    median, (least, most) = contender.median(what), contender.spread(what)
    return Row(group, contender.name, what, median, least, most, unit, limit / median, 1.0, note)


def table(rows: list[Row]) -> str:
    """Rows by group, with medians, spreads and ratios."""
    lines = []
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            lines += ["", group]
        verdict = "" if row.reached is None else ("  reached" if row.reached else "  MISSED")
        ratio = "" if row.ratio is None else f"{row.ratio:8.2f}x"
        goal = "" if row.goal is None else f" (goal {row.goal:g}x)"
        figures = f"{row.median:9.3f} {row.unit:<4} [{row.least:.3f} .. {row.most:.3f}]"
        lines.append(f"  {row.name:<44} {figures:<38}{ratio}{goal}{verdict}  {row.note}".rstrip())
    return "\n".join(lines)


def write_json(path: Path, rows: list[Row], machine: dict[str, object]) -> None:
    """The same for programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine, "rows": [asdict(row) | {"reached": row.reached} for row in rows]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
