"""One-shot Java programs of `java/`, compiled against Kafka's classes."""

from __future__ import annotations

import os
import subprocess

from .maven import JAVA_SOURCES, KafkaJars, compile_java, java_command

PROGRAM_TIMEOUT_SECONDS = 1_800


class ProgramFailed(Exception):
    """A Java program of the rig ended with an error; the text holds what it said."""


def run_java_program(jars: KafkaJars, class_name: str, *arguments: str, heap_megabytes: int = 512) -> dict[str, int]:
    """Run `java/<class_name>.java` to its end, and give the `NAME=NUMBER` words that it printed.

    Raises RigMissing without a JDK, CompilationFailed, and ProgramFailed when it ends with an error.
    """
    classes = compile_java([JAVA_SOURCES / f"{class_name}.java"], jars.class_path)
    completed = subprocess.run(
        [
            *(java_command(), f"-Xmx{heap_megabytes}M", "-XX:+UseSerialGC"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", os.pathsep.join([str(classes), jars.class_path]), class_name, *arguments),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_SECONDS,
        check=False,
    )
    if completed.returncode != 0:
        raise ProgramFailed(f"{class_name} ended with {completed.returncode}: {completed.stderr.strip()}")
    pairs = (word.partition("=") for word in completed.stdout.split())
    return {name: int(number) for name, _, number in pairs}
