"""What a data source raises in a Python worker, as the one sentence that users see."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tieredctl.errors import TieredctlError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Lets Spark show a TieredctlError without a traceback. A fault of ours keeps it."""
    try:
        yield
    except TieredctlError:
        # PySpark looks at this when it writes the error down; then the worker ends, so nobody else's error is cut.
        if _is_worker():
            os.environ[_HIDE_TRACEBACK] = "1"
        raise


def _is_worker() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
