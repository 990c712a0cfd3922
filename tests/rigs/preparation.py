"""What rigs are made of, made before a test asks for it: `python -m tests.rigs.preparation`.

`make test` starts it beside lint, which is one process. Whatever it cannot make the test that needs it makes, or names.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from tests.shares import divided

from .class_archives import spark_archive_options
from .go_program import go_program
from .maven import kafka_jars
from .node_program import node_program
from .object_servers import AZURITE, FAKE_GCS_SERVER, VERSITYGW
from .prerequisites import RigMissing
from .spark_releases import RELEASES, installed_spark


def _parts() -> Iterator[Callable[[], object]]:
    """In the order in which tests ask for them."""
    yield _compile_tests
    yield partial(kafka_jars, "4.3.1")
    yield spark_archive_options
    yield partial(kafka_jars, "3.9.1")
    for package in (VERSITYGW, FAKE_GCS_SERVER):
        yield partial(go_program, *package)
    yield partial(node_program, *AZURITE)
    for release in divided(RELEASES):
        yield partial(installed_spark, release)
    yield partial(kafka_jars, "4.4.0")


def _compile_tests() -> None:
    """Each process that runs tests would compile all of them."""
    words = ("--collect-only", "--quiet", "-p", "no:cacheprovider")
    subprocess.run([sys.executable, "-m", "pytest", *words], stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    for make in _parts():
        with suppress(RigMissing):
            make()
