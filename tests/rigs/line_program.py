"""Java programs of `java/` that answer lines with lines."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from .java_program import ProgramFailed
from .maven import JAVA_SOURCES, KafkaJars, compile_java, java_command


class LineProgram:
    """A Java process of a class, with its package if it has one, as a context manager.

    Raises RigMissing when made on a machine without a JDK or the jars.
    """

    def __init__(self, jars: KafkaJars, class_name: str) -> None:
        classes = compile_java([JAVA_SOURCES / f"{class_name.rpartition('.')[2]}.java"], jars.class_path)
        self._name = class_name
        self._process = subprocess.Popen(
            [
                *(java_command(), "-Xmx256M", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"),
                *("-cp", os.pathsep.join([str(classes), jars.class_path]), class_name),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process; it ends by itself when this one does."""
        self._process.kill()
        self._process.communicate()

    def ask(self, lines: Iterable[str]) -> Any:
        """Sends lines and gives the one line of JSON that answers them. Raises ProgramFailed when it ended."""
        self.send(lines)
        return json.loads(self.receive())

    def send(self, lines: Iterable[str]) -> None:
        """Sends lines; that the process ended shows when its answer is received."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines))
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: so does its output

    def receive(self) -> str:
        """The next line that it answers. Raises ProgramFailed when it ended."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise ProgramFailed(f"{self._name} ended with {self._process.wait()} instead of an answer")
        return answer.rstrip("\n")
