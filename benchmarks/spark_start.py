"""A session that counts one row: what Spark itself takes."""

from __future__ import annotations

from benchmarks.spark_sessions import small_session


def main() -> None:
    """Starts and ends it."""
    with small_session() as session:
        assert session.range(1).count() == 1


main()
