"""Whatever is asked of a coordinator, and whatever happens to it meanwhile, it does what the model does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.conftest import inputs
from tests.coordinator.story import Story
from tests.shares import divided

STEPS = 60


def test_answers_and_state_are_the_models_after_any_history(tmp_path: Path) -> None:
    for seed in divided(range(inputs(500))):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with closing(Story(folder, seed)) as story:
            try:
                story.run(STEPS)
            except BaseException as failure:
                failure.add_note(f"seed {seed}")
                raise
