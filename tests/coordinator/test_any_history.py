"""Whatever is asked of a coordinator, and whatever happens to it meanwhile, it does what the model does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import examples
from tests.coordinator.story import Story

STEPS = 60
SHARES = 10
"""In as many tests, so that a failure names a tenth of the seeds."""


@pytest.mark.parametrize("share", range(SHARES))
def test_answers_and_state_are_the_models_after_any_history(tmp_path: Path, share: int) -> None:
    for seed in range(share, examples(500), SHARES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with closing(Story(folder, seed)) as story:
            try:
                story.run(STEPS)
            except BaseException as failure:
                failure.add_note(f"seed {seed}")
                raise
