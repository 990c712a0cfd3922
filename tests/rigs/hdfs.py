"""HDFS by Hadoop's own mini cluster out of Maven Central: two namenodes, of which one is on standby, and a datanode."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import urllib3

from .maven import JAVA_SOURCES, QUICK_JAVA, RIGS_FOLDER, compile_java, copy_dependencies, java_command
from .prerequisites import BUILD_FOLDER, build_folder

SUPERUSER, USER = "hdfs", "kafka"
_JARS = BUILD_FOLDER / "hdfs" / "3.5.0"


class HadoopProcess:
    """Hadoop's mini cluster in a process that ends with this one: a class of tests/rigs/java, inside a `with`. Raises
    RigMissing without a JDK or Maven."""

    def __init__(self, name: str) -> None:
        java_command("javac")
        if not _JARS.is_dir():
            pom = (RIGS_FOLDER / "hdfs-pom.xml").read_text(encoding="utf-8")
            build_folder(_JARS, lambda unfinished: copy_dependencies(pom, "Hadoop's mini cluster", unfinished))
        self._name = name
        self._folder = tempfile.TemporaryDirectory(prefix="hdfs-")
        class_path = [str(_JARS / "*"), self._folder.name]
        self._class_path = [str(compile_java([JAVA_SOURCES / f"{name}.java"], class_path[0])), *class_path]

    @property
    def folder(self) -> Path:
        """For files of its own, where Hadoop also looks for its settings."""
        return Path(self._folder.name)

    def start(self, options: Sequence[str] = (), words: Sequence[str] = ()) -> str:
        """The line that it says when it runs. It is given the folder of its data, and then `words`."""
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(java_command(), *QUICK_JAVA, "-Xmx384M", *options, "-cp", os.pathsep.join(self._class_path)),
                    *(self._name, str(self.folder / "data"), *words),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                text=True,
            )
        said = self._said()
        if not said:
            self._process.communicate()
            written = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
            self._folder.cleanup()
            raise ChildProcessError(f"{self._name} ended with {self._process.returncode}:\n{written[-2_000:]}")
        return said

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._folder.cleanup()

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


class HdfsCluster(HadoopProcess):
    """A running cluster that believes everybody's name."""

    def __init__(self) -> None:
        super().__init__("HdfsCluster")

    def __enter__(self) -> Self:
        said = self.start([f"-DHADOOP_USER_NAME={SUPERUSER}"])
        active, standby = said.removeprefix("ports=").split(",")
        self.active, self.standby = f"http://127.0.0.1:{active}", f"http://127.0.0.1:{standby}"
        return self

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
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._said() == "changed"
        self.active, self.standby = self.standby, self.active

    def blocks(self, size: int) -> list[Path]:
        """The datanode's files of blocks of that size in bytes."""
        found = (self.folder / "data").rglob("blk_*")
        return [path for path in found if path.suffix != ".meta" and path.stat().st_size == size]
