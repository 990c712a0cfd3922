"""Seeds, tried by two processes at a time."""

from __future__ import annotations

import gc
import os
import shutil
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

WORKERS = 2
Try = Callable[[int, Path], object]


def failures_of(seeds: Sequence[int], attempt: Try, folder: Path, most: int = 5) -> list[str]:
    """What went wrong, by seed; each worker gives up after `most`, and where the other one did."""
    (folder / "given-up").unlink(missing_ok=True)
    workers = []
    for number in range(WORKERS):
        shutil.rmtree(folder / f"worker-{number}", ignore_errors=True)
        worker = os.fork()
        if worker == 0:
            _work_and_end(seeds[number::WORKERS], attempt, folder / f"worker-{number}", most)
        workers.append(worker)
    ended = [os.waitpid(worker, 0)[1] for worker in workers]
    assert not any(ended), f"workers ended with {ended}"
    reports = [folder / f"worker-{number}" / "report" for number in range(WORKERS)]
    return [text for path in reports if path.exists() for text in path.read_text().split("\0") if text]


def _work_and_end(seeds: Sequence[int], attempt: Try, folder: Path, most: int) -> None:
    status = 1
    # What the parent left to the collector is the parent's: clients of Kafka have threads that are not here.
    gc.freeze()
    try:
        folder.mkdir()
        given_up = folder.with_name("given-up")
        with (folder / "report").open("w") as report:
            for seed in seeds:
                most -= _is_failure(seed, attempt, folder / "seed", report.write)
                if not most:
                    given_up.touch()
                if given_up.exists():
                    break
        status = 0
    finally:
        os._exit(status)


def _is_failure(seed: int, attempt: Try, folder: Path, tell: Callable[[str], object]) -> bool:
    folder.mkdir()
    try:
        attempt(seed, folder)
    except Exception:  # noqa: BLE001 - told to the parent
        tell(f"seed {seed}: {traceback.format_exc(limit=-6)}\0")
        return True
    finally:
        shutil.rmtree(folder)
    return False
