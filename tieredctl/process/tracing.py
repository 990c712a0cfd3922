"""What is asked of brokers, stores and databases, and how long each answer took: for whoever looks at these loggers.

A logger has the name of the package that asks. Its records name servers, topics, keys, offsets and sizes: never what
is in a record, an object or a setting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Asked:
    """A question that is under way."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer = ""
        """What came, in a few words (`12 objects`); empty where that it came says it all."""


def is_traced(asker: str) -> bool:
    """Whether anybody looks at what this package asks."""
    return logging.getLogger(asker).isEnabledFor(logging.INFO)


@contextmanager
def traced(asker: str, server: str, question: str) -> Iterator[Asked]:
    """Logs a question once it was answered, or failed. `asker` is the package's name."""
    asked = Asked()
    began = time.perf_counter()
    try:
        yield asked
    except BaseException as error:
        log_answer(asker, server, question, f"failed: {error}" if str(error) else type(error).__name__, began)
        raise
    log_answer(asker, server, question, asked.answer, began)


def log_answer(asker: str, server: str, question: str, answer: str, began: float, seconds: float | None = None) -> None:
    """Logs what a server was asked since `began`, which is of `time.perf_counter`; `seconds` where not all of the time
    since then was waited for it."""
    took = time.perf_counter() - began if seconds is None else seconds
    asked = {"server": server, "question": question, "answer": answer, "seconds": took}
    logging.getLogger(asker).info(
        "%s: %s: %s%.1f ms", server, question, f"{answer}, " if answer else "", took * 1000, extra={"asked": asked}
    )
