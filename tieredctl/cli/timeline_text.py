"""A partition over its offsets, drawn for people: a lane for each thing that segments are, and what it means."""

from __future__ import annotations

from textwrap import wrap
from typing import NamedTuple, TextIO

from tieredctl.cli.terminal import coloured, emphasized, has_blocks, width_of
from tieredctl.drawing.scale import Scale, placed, runs
from tieredctl.drawing.timeline import MEANINGS, Lane, Part, Timeline
from tieredctl.model.counted import counted
from tieredctl.model.printable import printable
from tieredctl.model.quantities import age_text
from tieredctl.ops.timeline.partition_timeline import PartitionTimeline

_USUAL_WIDTH = 80
_LABEL = 11
_LEAST_CELLS = 10
_TICKS = 4
_INDENT = "    "
_LEAST_ROOM = 24
_SEGMENT_BEGINS = ("\u2590", "|")


class _Look(NamedTuple):
    """How a part looks: with blocks, in ASCII, and in which colour."""

    block: str
    ascii: str
    colour: str


_LOOKS = {
    Part.COPIED: _Look("\u2588", "#", "32"),
    Part.LOCAL: _Look("\u2584", "~", "34"),
    Part.DELETED: _Look("\u00b7", ".", "90"),
    Part.UNREACHED: _Look("\u2591", ":", "35"),
    Part.DELETING: _Look("\u2591", "-", "36"),
    Part.COPYING: _Look("\u2592", "+", "33"),
    Part.OVERLAP: _Look("\u2550", "=", "35"),
    Part.UNKNOWN: _Look("?", "?", "33"),
    Part.GAP: _Look("X", "X", "31"),
    Part.MISSING: _Look("!", "!", "1;31"),
}
_TROUBLE_OF_COPIES = (Part.OVERLAP, Part.UNKNOWN, Part.GAP, Part.MISSING)
_UNFINISHED = (Part.COPYING, Part.DELETING)


class Marked(NamedTuple):
    """An offset to point at, and what is said of it."""

    offset: int
    said: str


class TimelineDrawing:
    """Draws on a stream, as wide as that is."""

    def __init__(self, out: TextIO, now_ms: int) -> None:
        self._out = out
        self._now_ms = now_ms
        self._width = width_of(out) or _USUAL_WIDTH
        self._is_ascii = not has_blocks(out)

    def write(self, of_partition: PartitionTimeline) -> None:
        """A partition under its name."""
        bounds = of_partition.timeline.bounds
        if bounds is None:
            return
        segments = sum(part.segments for part in of_partition.timeline.parts.values())
        name = f"{of_partition.partition.topic}-{of_partition.partition.partition}"
        facts = f"offsets {bounds[0]} to {bounds[1]}, {counted(segments, 'segment')}, {of_partition.bytes}"
        first, *others = self._wrapped(f"{printable(name)}: {facts}", "")
        self._out.writelines(line + "\n" for line in (emphasized(first, self._out), *others))
        self.write_timeline(of_partition.timeline)

    def write_timeline(self, timeline: Timeline, marked: Marked | None = None) -> None:
        """Writes a timeline's lanes and leader epochs, where offsets are, and what the signs mean."""
        if timeline.bounds is None:
            return
        scale = timeline.scale(max(self._width - _LABEL, _LEAST_CELLS))
        for lane in timeline.lanes(scale):
            self._line(lane.name, self._cells(lane))
        if marked is not None:
            self._line("", self._pointer(scale, marked))
        self._line("epoch", placed(((cell, str(epoch)) for cell, epoch in timeline.epochs_on(scale)), scale.width))
        self._line("offset", _ruler(scale))
        for part in sorted(timeline.parts, reverse=True):
            self._note(part, timeline)

    def _line(self, name: str, cells: str) -> None:
        self._out.write(f"{name:<{_LABEL}}{cells}".rstrip() + "\n")

    def _sign(self, part: Part) -> str:
        return _LOOKS[part].ascii if self._is_ascii else _LOOKS[part].block

    def _cells(self, lane: Lane) -> str:
        return "".join(self._run(lane, *run) for run in runs(lane.cells))

    def _run(self, lane: Lane, number: int, first: int, end: int) -> str:
        if not number:
            return " " * (end - first)
        part = Part(number)
        sign, begin = self._sign(part), _SEGMENT_BEGINS[self._is_ascii]
        shown = [begin if self._shows_begin(lane, part, at, end) else sign for at in range(first, end)]
        text = "".join(shown)
        return coloured(text, _LOOKS[part].colour, self._out)

    @staticmethod
    def _shows_begin(lane: Lane, part: Part, at: int, end: int) -> bool:
        """Trouble is never hidden by where a segment begins."""
        if part is Part.COPIED:
            return bool(lane.begins[at])
        return part not in _TROUBLE_OF_COPIES and at + 1 < end and bool(lane.begins[at] and not lane.begins[at + 1])

    def _pointer(self, scale: Scale, marked: Marked) -> str:
        cell = scale.cell(marked.offset)
        if marked.offset > scale.last:
            sign = ">"
        elif marked.offset < scale.first:
            sign = "<"
        else:
            sign = "^" if self._is_ascii else "\u25b2"
        label = f"{marked.offset}: {marked.said}"
        if cell + 2 + len(label) <= scale.width:
            return " " * cell + f"{sign} {label}"
        if len(label) + 1 <= cell:
            return f"{label} ".rjust(cell) + sign
        return " " * cell + sign + "\n" + " " * _LABEL + label

    def _note(self, part: Part, timeline: Timeline) -> None:
        ranges, look = timeline.parts[part], _LOOKS[part]
        text = f"{self._sign(part)} {MEANINGS[part]}"
        if ranges.segments:
            text += f": {counted(ranges.segments, 'segment')}"
        if ranges.since_ms is not None and part in _UNFINISHED:
            text += f", the oldest for {age_text(self._now_ms - ranges.since_ms)}"
        if part is not Part.COPIED:
            text += ": " if ranges.segments else " "
            text += ranges.ranges.joined().text(self._room(text))
        sign, *others = self._wrapped(text, "  ")
        signed = sign.replace(self._sign(part), coloured(self._sign(part), look.colour, self._out), 1)
        self._out.writelines(line + "\n" for line in (signed, *others))

    def _room(self, text: str) -> int:
        """For what follows a text: on its line, or on the next one."""
        left = self._width - len(text) - len(_INDENT)
        return left if left >= _LEAST_ROOM else self._width - len(_INDENT)

    def _wrapped(self, text: str, indent: str) -> list[str]:
        return wrap(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _ruler(scale: Scale) -> str:
    """Offsets at as many cells as there is room for, and the last one at the end."""
    last = str(scale.last)
    for ticks in range(_TICKS, 0, -1):
        cells = [number * scale.width // ticks for number in range(ticks)]
        labels = [(cell, str(scale.offset(cell))) for cell in cells]
        ends = [cell + len(label) + 2 for cell, label in labels]
        starts = [*cells[1:], scale.width - len(last)]
        are_others = len({last, *(label for _, label in labels)}) > ticks
        if are_others and all(end <= start for end, start in zip(ends, starts, strict=True)):
            return placed(labels, scale.width - len(last)) + last
    return last if scale.first == scale.last else f"{scale.first}..{last}"
