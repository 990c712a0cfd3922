"""Runs what a page tells."""

from __future__ import annotations

from collections.abc import Iterator

from tests.documentation.comparing import shows, shows_alike
from tests.documentation.pages import Command, Story, name_of
from tests.documentation.places import QUESTION_ENDS, Place

LIVE = ("broker", "diskless", "night")
"""Places with a server."""


def differences(story: Story, place: Place) -> Iterator[str]:
    """For each command that prints something else than its page shows: where, and all that it printed."""
    for command in story.commands:
        printed = place.run(command.typed, asks=any(QUESTION_ENDS in line for line in command.printed or ()))
        if not _as_said(command, printed, place):
            yield _told(story, command, printed)


def _as_said(command: Command, printed: list[str], place: Place) -> bool:
    if command.printed is None:
        return place.exit_code == 0
    if not command.printed:
        return place.exit_code not in (1, 2)
    if place.lives:
        return shows_alike(command.printed, printed, place.ids)
    return shows(command.printed, printed)


def _told(story: Story, command: Command, printed: list[str]) -> str:
    where = f"{name_of(story.page)}:{command.line_number} ({story.place})"
    return "\n".join([f"{where}: `{command.typed}` prints:", *printed])
