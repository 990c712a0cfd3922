"""Spark's failures, each as one sentence."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PySparkImportError

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.crash_file import FaultElsewhere
from tieredctl_spark.failure_marks import before_marks, marked_error

SUBMITTED_BY = "PYSPARK_GATEWAY_PORT"
"""The environment variable that spark-submit sets for a driver in Python."""
_TRACEBACK = "Traceback (most recent call last):"
_JAVA_CAUSE = re.compile(r"^(?:: |Caused by: |Exception in thread \"main\" )(?P<exceptions>.+)$", re.MULTILINE)
_JAVA_EXCEPTION_NAME = re.compile(r"(?:[\w$]+\.)+[\w$]+(?:: |$)")
_OWN_ERROR = re.compile(r"^.*\btieredctl\.errors\.TieredctlError: (?P<sentence>.+)$", re.MULTILINE)
_HOLLOW = "Exception thrown in awaitResult"


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turns what Spark raises into TieredctlError, without a traceback: what a Python worker raised has its own code,
    message and hint again; a package that PySpark needs is `missing-extra`, all else `spark-failed`. A fault of ours in
    a worker becomes FaultElsewhere. Ctrl-C stays an interrupt."""
    try:
        yield
    except PySparkImportError as error:
        hint = "Install the required packages with `pip install tieredctl-spark`."
        raise TieredctlError(
            ErrorCode.MISSING_EXTRA, f"Spark cannot run here: {reason(str(error))}", hint=hint
        ) from None
    except (PySparkException, Py4JError) as error:
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise _of_a_worker(str(error)) or _of_spark(str(error)) from None


@contextmanager
def error_stream() -> Iterator[TextIO]:
    """Where sentences about failures go. spark-submit joins our stderr to its stdout: there, it is its own."""
    try:
        stream = open(f"/proc/{os.getppid()}/fd/2", "a", encoding="utf-8") if SUBMITTED_BY in os.environ else None  # noqa: SIM115
    except OSError:
        stream = None
    if stream is None:
        yield sys.stderr
        return
    with stream:
        yield stream


def _of_a_worker(text: str) -> Exception | None:
    error = marked_error(text)
    if error is None or error.code is not ErrorCode.FAULT:
        return error
    return FaultElsewhere(error.message, before_marks(text))


def _of_spark(text: str) -> TieredctlError:
    return TieredctlError(ErrorCode.SPARK_FAILED, f"Spark failed: {reason(text)}")


def _interrupted(error: BaseException | None) -> bool:
    """On Ctrl-C PySpark cancels the jobs, and what the cancelled job raises then hides the KeyboardInterrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def reason(text: str) -> str:
    """The line of an exception's text that gives the reason: tieredctl's own sentence, a Python worker's error, a Java
    exception or its cause."""
    if own := _OWN_ERROR.search(text):
        return own["sentence"]
    if _TRACEBACK in text:
        after = text.rpartition(_TRACEBACK)[2].splitlines()[1:]
        return next((line for line in after if not line.startswith(" ")), after[-1])
    causes = (_without_names(match["exceptions"]) for match in _JAVA_CAUSE.finditer(text))
    first_line = next(iter(text.strip().splitlines()), "it gave no reason")
    return next((cause for cause in causes if cause and not cause.startswith(_HOLLOW)), first_line)


def _without_names(exceptions: str) -> str:
    """The message after the last name of a Java exception in a line, since each exception repeats its causes."""
    return _JAVA_EXCEPTION_NAME.split(exceptions)[-1].strip()
