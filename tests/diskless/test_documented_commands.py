"""What the documentation tells to type about diskless topics prints what is shown, but for figures and ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.live_places import diskless_place
from tests.documentation.pages import Story, pages, read
from tests.documentation.stories import differences
from tests.rigs.inkless import Inkless

STORIES = [story for page in pages() for story in read(page)[0] if story.place == "diskless"]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_commands_print_what_is_shown(story: Story, inkless: Inkless, tmp_path: Path) -> None:
    found = list(differences(story, diskless_place(inkless, tmp_path)))

    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
