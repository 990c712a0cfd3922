"""Something done in a forked process that may be killed."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    was_killed: bool
    result: Any = None
    """What it returned, where it was not killed."""


def in_child(work: Callable[[], Any], folder: Path) -> Ended:
    """Does the work in a forked process. Raises AssertionError, with the child's own traceback, where it failed."""
    answer = folder / "answer"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _work_and_end(work, answer)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Ended(was_killed=True)
    if status:
        raise AssertionError(answer.read_text() if answer.exists() else f"the child ended with status {status}")
    return Ended(was_killed=False, result=pickle.loads(answer.read_bytes()))


def _work_and_end(work: Callable[[], Any], answer: Path) -> None:
    status = 1
    # What the parent left to the collector is the parent's: clients of Kafka have threads that are not here.
    gc.freeze()
    try:
        answer.write_bytes(pickle.dumps(work()))
        status = 0
    except BaseException:  # noqa: BLE001 - told to the parent
        answer.write_text(traceback.format_exc())
    finally:
        sys.stderr.flush()
        os._exit(status)
