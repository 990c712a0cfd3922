"""`tieredctl pipeline run` on a cluster:

    spark-submit --master … pipeline.py --bootstrap-server HOST:PORT --store URL --tables URL

The arguments, the exit codes and the sentences are the command's; the result is its JSON document. Each run reads the
events that are new, lists the store and compares both, and writes the tables' files; a manifest that is written last
makes them current all at once. A run that is killed leaves what was current, and is run again. Nothing in the store is
changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stderr

from tieredctl.cli.main import run
from tieredctl_spark.failures import error_stream


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    with error_stream() as stream, redirect_stderr(stream):
        return run(["pipeline", "run", "-o", "json", *words])


if __name__ == "__main__":
    sys.exit(main())
