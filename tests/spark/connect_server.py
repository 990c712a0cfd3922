"""A Spark Connect server for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rigs.ports import free_ports
from tests.rigs.small_spark import INTERPRETED, SMALL, conf_words
from tests.rigs.waiting import wait_until


@contextmanager
def running_connect_server(folder: Path) -> Iterator[str]:
    """The address of one on loopback, whose Python is ours."""
    import pyspark  # there may be none

    (port,) = free_ports(1)
    home = Path(pyspark.__file__).parent
    words = [home / "bin/spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    words += ["--master", "local[2]", *conf_words(SMALL | INTERPRETED | settings)]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = folder / "connect.log"
    with log.open("wb") as output:
        command = [*map(str, words), "spark-internal"]
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
    try:
        started = b"Spark Connect server started"
        wait_until(lambda: server.poll() is not None or started in log.read_bytes(), "the server's start", 240)
        assert server.poll() is None, log.read_text("utf-8", "replace")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)
