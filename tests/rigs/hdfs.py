"""HDFS by Hadoop's own mini cluster out of Maven Central: two namenodes, of which one is on standby, and a datanode."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import urllib3

from .maven import JAVA_SOURCES, QUICK_JAVA, RIGS_FOLDER, compile_java, copy_dependencies, java_command
from .prerequisites import BUILD_FOLDER, build_folder

SUPERUSER, USER = "hdfs", "kafka"
_JARS = BUILD_FOLDER / "hdfs" / "3.5.0"
_CLASS = "HdfsCluster"


class HdfsCluster:
    """A running cluster, in a process of its own that ends with this one. Raises RigMissing without a JDK or Maven."""

    def __init__(self) -> None:
        java_command("javac")
        if not _JARS.is_dir():
            pom = (RIGS_FOLDER / "hdfs-pom.xml").read_text(encoding="utf-8")
            build_folder(_JARS, lambda unfinished: copy_dependencies(pom, "Hadoop's mini cluster", unfinished))
        class_path = str(_JARS / "*")
        classes = compile_java([JAVA_SOURCES / f"{_CLASS}.java"], class_path)
        self._command = [
            *(java_command(), *QUICK_JAVA, "-Xmx384M", f"-DHADOOP_USER_NAME={SUPERUSER}"),
            *("-cp", os.pathsep.join([str(classes), class_path]), _CLASS),
        ]
        self._folder = tempfile.TemporaryDirectory(prefix="hdfs-")

    def __enter__(self) -> Self:
        log = Path(self._folder.name, "log").open("wb")
        with log:
            self._process = subprocess.Popen(
                [*self._command, str(Path(self._folder.name, "data"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder.name,
                text=True,
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("ports="):
            self._stop()
            raise ChildProcessError(f"{_CLASS} ended with {self._process.returncode}")
        active, standby = said.strip().removeprefix("ports=").split(",")
        self.active, self.standby = f"http://127.0.0.1:{active}", f"http://127.0.0.1:{standby}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._folder.cleanup()

    def ask(self, method: str, path: str, operation: str, user: str = USER, **parameters: str) -> Any:
        """What the active namenode answers."""
        asked = {"op": operation, "user.name": user, **parameters}
        address = f"{self.active}/webhdfs/v1{quote(path)}"
        answer = (
            urllib3.request(method, address, fields=asked, redirect=False)
            if method in {"GET", "DELETE"}
            else (
                urllib3.request(
                    method, f"{address}?{'&'.join(f'{name}={quote(value)}' for name, value in asked.items())}"
                )
            )
        )
        assert answer.status == 200, answer.data
        return answer.json() if answer.data else None

    def fail_over(self) -> None:
        """Makes the other namenode the active one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "changed\n"
        self.active, self.standby = self.standby, self.active

    def blocks(self, size: int) -> list[Path]:
        """The datanode's files of blocks of that size in bytes."""
        found = Path(self._folder.name, "data").rglob("blk_*")
        return [path for path in found if path.suffix != ".meta" and path.stat().st_size == size]

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()
