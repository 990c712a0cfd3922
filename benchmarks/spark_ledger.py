"""The job `verify` in the session of all contenders: `python -m benchmarks.spark_ledger`, with the job's arguments."""

from __future__ import annotations

import sys

from tieredctl_spark.jobs import verify

from benchmarks.spark_sessions import small_session


def main() -> int:
    """Its exit code."""
    with small_session():
        return verify.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
