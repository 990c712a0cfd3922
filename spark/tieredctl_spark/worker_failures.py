"""What is raised in a Python worker, as users see it, and as the driver gets it back."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tieredctl.errors import TieredctlError, system_error
from tieredctl.model.printable import printable
from tieredctl.process.crash_file import FaultElsewhere, fault_error
from tieredctl_spark.failure_marks import mark

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
_OWN_PACKAGE, _SPARKS_PACKAGE = "tieredctl", "pyspark"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Lets Spark show a TieredctlError without a traceback, and `spark_failures` raise it on the driver with its code.
    An error of the system is one as elsewhere. A fault of ours has its traceback as a text, and is known as ours; what
    Spark itself raises, and that a package is missing, is left to Spark. On the driver nothing is changed."""
    try:
        yield
    except Exception as error:
        if not _is_worker() or isinstance(error, ImportError) or _is_sparks(error):
            raise
        if isinstance(error, OSError | MemoryError):
            error = system_error(error)
        raise _shown(error if isinstance(error, TieredctlError) else _elsewhere(error)) from None


def _shown(error: TieredctlError | FaultElsewhere) -> Exception:
    """The error with its mark, and a text of one line in UTF-8. For that of a file whose name is not UTF-8, the JVM
    would wait forever: PySpark says that an error comes, and then cannot encode it."""
    # PySpark looks at this when it writes the error down; then the worker ends, so nobody else's error is cut.
    os.environ[_HIDE_TRACEBACK] = "1"
    error.args = (printable(str(error)),)
    line = mark(fault_error(error, None) if isinstance(error, FaultElsewhere) else error)
    if line not in getattr(error, "__notes__", ()):  # from a source within another
        error.add_note(line)
    return error


def _elsewhere(fault: Exception) -> FaultElsewhere:
    if isinstance(fault, FaultElsewhere):
        return fault
    trace = "".join(traceback.format_exception(fault))
    return FaultElsewhere(fault_error(fault, None).message, trace.encode("utf-8", "backslashreplace").decode())


def _is_sparks(error: BaseException) -> bool:
    """Whether it was raised by PySpark, which our code had called: to get its rows, for one."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [place for place, module in enumerate(modules) if module.startswith(_OWN_PACKAGE)]
    return any(module.split(".")[0] == _SPARKS_PACKAGE for module in modules[own[-1] if own else 0 :])


def _is_worker() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
