"""What the documentation tells to type works, and prints what is shown: on what captured clusters left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.documentation.pages import Story, blocks, name_of, pages, read
from tests.documentation.places import Place, captured_places
from tests.documentation.stories import LIVE, differences
from tests.rigs.memory import IN_MEMORY

STORIES = [story for page in pages() for story in read(page)[0] if story.place not in LIVE]
NOT_RUN_AT_MOST = 6
"""Blocks; each has its reason in the page. Take this down with them."""


@pytest.fixture(scope="module")
def places(captures: Path) -> dict[str, Callable[[Path], Place]]:
    return captured_places(captures)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_commands_print_what_is_shown(story: Story, places: dict[str, Callable[[Path], Place]]) -> None:
    with TemporaryDirectory(prefix="tieredctl-page-", dir=IN_MEMORY) as folder:
        found = list(differences(story, places[story.place](Path(folder))))

    if found:
        pytest.fail("\n\n".join(found), pytrace=False)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    not_run = [one for page in pages() for one in read(page)[1]]

    without = [f"{name_of(one.page)}:{one.line_number}" for one in not_run if not one.reason]
    assert not without, f"say where they are run, with <!-- commands: PLACE -->: {without}"
    assert len(not_run) <= NOT_RUN_AT_MOST, "\n".join(
        f"{name_of(one.page)}:{one.line_number}: {one.reason}" for one in not_run
    )


def test_no_command_stands_in_a_block_without_its_prompt() -> None:
    for page in pages():
        for line_number, language, text in blocks(page):
            if language in ("", "console", "sh", "bash", "text"):
                bare = [line for line in text.splitlines() if line.startswith(("tieredctl ", "kafka-"))]
                assert not bare, f"{name_of(page)}:{line_number}: write `$ {bare[0]}`"
