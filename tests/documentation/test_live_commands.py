"""What the documentation tells to type works on a running broker, and prints what is shown, but for figures and ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.live_places import broker_place
from tests.documentation.pages import Story, pages, read
from tests.documentation.stories import differences
from tests.rigs.driven_brokers import DrivenBroker

STORIES = [story for page in pages() for story in read(page)[0] if story.place == "broker"]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_commands_print_what_is_shown(story: Story, kafka_4: DrivenBroker, tmp_path: Path) -> None:
    found = list(differences(story, broker_place(kafka_4.broker, tmp_path)))

    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
