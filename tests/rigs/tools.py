"""Kafka's own command-line tools, called by class name."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from .maven import QUICK_JAVA, KafkaJars, java_command

TOOL_TIMEOUT_SECONDS = 120
METADATA_FORMATTER = (
    "org.apache.kafka.server.log.remote.metadata.storage.serialization."
    "RemoteLogMetadataSerde$RemoteLogMetadataFormatter"
)
_LOG_FILE_NAME = re.compile(r"\d{20}\.(log|index|timeindex|txnindex)|.*\.(snapshot|checkpoint)")


class ToolFailed(Exception):
    """A Kafka tool ended with an error; the text holds what it said."""


def run_tool(
    jars: KafkaJars,
    class_name: str,
    *arguments: str,
    timeout_seconds: float = TOOL_TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run the `main` of `class_name` to its end, whatever its exit code, with its output captured as text."""
    return subprocess.run(
        [
            *(java_command(), "-Xmx512M", *QUICK_JAVA),
            *("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", jars.class_path, class_name, *arguments),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )


def tool_output(
    jars: KafkaJars,
    class_name: str,
    *arguments: str,
    timeout_seconds: float = TOOL_TIMEOUT_SECONDS,
) -> str:
    """What a tool printed on standard output; raises ToolFailed when its exit code is not 0."""
    completed = run_tool(jars, class_name, *arguments, timeout_seconds=timeout_seconds)
    if completed.returncode != 0:
        said = (completed.stderr or completed.stdout).strip()
        raise ToolFailed(f"{class_name} of Kafka {jars.version} ended with {completed.returncode}: {said}")
    return completed.stdout


def console_consumer_class(jars: KafkaJars) -> str:
    """Where that version keeps its console consumer."""
    package = "org.apache.kafka.tools.consumer" if jars.release >= (3, 8) else "kafka.tools"
    return f"{package}.ConsoleConsumer"


def dump_log_class(jars: KafkaJars) -> str:
    """Where that version keeps dump-log."""
    package = "org.apache.kafka.tools" if jars.release >= (4, 3) else "kafka.tools"
    return f"{package}.DumpLogSegments"


def dump_log(jars: KafkaJars, file: Path, *options: str) -> str:
    """What dump-log prints about `file`, a log, an index or a snapshot.

    The tool judges a file by a name of 20 digits, so a remote segment is shown to it under such a name: the digits that
    its own name starts with.
    """
    if _LOG_FILE_NAME.fullmatch(file.name):
        return tool_output(jars, dump_log_class(jars), "--files", str(file), *options)
    with tempfile.TemporaryDirectory(prefix="dump-log-") as folder:
        named = Path(folder, f"{file.name[:20]}{file.suffix}")
        named.symlink_to(file.resolve())
        return tool_output(jars, dump_log_class(jars), "--files", str(named), *options)
