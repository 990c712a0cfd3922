"""Times the ten tasks of docs/compared.md, as they are typed there, on one broker that was driven through a life:
`python -m benchmarks.ten_tasks`. kcl is left out where it is not on the PATH."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.cli.command_line import REPOSITORY, environment
from tests.documentation.live_places import broker_place
from tests.documentation.pages import Command, read
from tests.documentation.places import Place
from tests.rigs.broker import KafkaBroker
from tests.rigs.maven import kafka_jars
from tests.rigs.workload import drive

KAFKA_VERSION = "4.3.1"
REPETITIONS = 3
TOOLS = ("kafka", "kcl", "tieredctl")
_PAGE = REPOSITORY / "docs" / "compared.md"
_TASK = re.compile(r"^### (?P<number>\d+)\. (?P<name>.*)$", re.MULTILINE)
_TASK_OF_KCL = re.compile(r"  # (\d+)$")


def main() -> None:
    """Prints a line for each task: commands and seconds of each tool, the median of some runs."""
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    counts: dict[tuple[int, str], int] = {}
    with KafkaBroker(kafka_jars(KAFKA_VERSION)) as broker, tempfile.TemporaryDirectory() as folder:
        drive(broker)
        for repetition in range(REPETITIONS):
            place = broker_place(broker, Path(folder, str(repetition)))
            place.folder.mkdir()
            for key, times in _timed(place, broker.bootstrap_server).items():
                seconds[key].append(sum(times))
                counts[key] = len(times)
    for task in _TASK.finditer(_PAGE.read_text(encoding="utf-8")):
        print(f"{task['number']}. {task['name']}")
        for tool in TOOLS:
            if runs := seconds.get(key := (int(task["number"]), tool)):
                print(f"    {tool:<10} {counts[key]} commands  {statistics.median(runs):.2f} s")


def _timed(place: Place, server: str) -> dict[tuple[int, str], list[float]]:
    """The seconds of each command that belongs to a task; the others are only run."""
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for task, command in _commands():
        began = time.perf_counter()
        subprocess.run(
            ["bash", "-c", place.here(command.typed)],
            cwd=place.folder,
            env=environment(**place.variables(), KCL_SEED_BROKERS=server, KCL_NO_CONFIG_FILE="1"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if task and command.printed is not None:
            found[task, _tool(command.typed)].append(time.perf_counter() - began)
    return found


def _commands() -> Iterator[tuple[int, Command]]:
    """Those of the page with their task's number, 0 without one."""
    text = _PAGE.read_text(encoding="utf-8")
    begins = [(text.count("\n", 0, task.start()) + 1, int(task["number"])) for task in _TASK.finditer(text)]
    stories, not_run = read(_PAGE)
    typed = [command for story in stories for command in story.commands]
    of_kcl = [one for block in not_run for one in block.commands] if shutil.which("kcl") else []
    for command in typed:
        number = next((number for line, number in reversed(begins) if line < command.line_number), 0)
        if command.printed is None and "--delete" in command.typed:
            for one in of_kcl:
                yield int(_TASK_OF_KCL.findall(one.typed)[0]), one
        yield number, command


def _tool(typed: str) -> str:
    return next((tool for tool in ("kcl", "tieredctl") if re.search(rf"(^| ){tool} ", typed)), "kafka")


if __name__ == "__main__":
    main()
