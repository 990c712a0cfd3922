"""What rigs are made of, made before a test asks for it: `python -m tests.rigs.preparation`, and with the word
`servers` what needs nothing of tieredctl's own installation.

`make test` starts the servers beside that installation and the rest beside lint, which are one process each. Whatever
cannot be made the test that needs it makes, or names.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from .class_archives import spark_archive_options
from .go_program import go_program
from .maven import kafka_jars
from .node_program import node_program
from .object_servers import AZURITE, FAKE_GCS_SERVER, VERSITYGW
from .prerequisites import RigMissing
from .spark_releases import RELEASES, installed_spark

AT_ONCE = 2
"""One waits for what it downloads while another compiles."""


def _servers() -> Iterator[Callable[[], object]]:
    """In the order in which tests ask for them."""
    yield partial(kafka_jars, "4.3.1")
    yield partial(go_program, *VERSITYGW)
    yield partial(kafka_jars, "3.9.1")
    yield partial(go_program, *FAKE_GCS_SERVER)
    yield partial(kafka_jars, "4.4.0")


def _others() -> Iterator[Callable[[], object]]:
    """In the order in which tests ask for them."""
    from tests.shares import divided  # needs pytest

    yield _compile_tests
    yield spark_archive_options
    yield partial(node_program, *AZURITE)
    for release in divided(RELEASES):
        yield partial(installed_spark, release)


def _compile_tests() -> None:
    """Each process that runs tests would compile all of them."""
    words = ("--collect-only", "--quiet", "-p", "no:cacheprovider")
    subprocess.run([sys.executable, "-m", "pytest", *words], stdout=subprocess.DEVNULL, check=False)


def _make(part: Callable[[], object]) -> None:
    with suppress(RigMissing):
        part()


if __name__ == "__main__":
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_make, _servers() if sys.argv[1:] == ["servers"] else _others()))
