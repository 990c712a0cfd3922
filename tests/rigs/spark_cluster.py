"""A Spark cluster of several processes on this machine: a standalone master and two workers, of PySpark's own
distribution, and the environment that `make spark-archive` packs for them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .class_archives import spark_archive_options
from .maven import QUICK_JAVA, java_command
from .small_spark import SMALL, conf_words
from .waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "dist" / "tieredctl-spark.tar.gz"
START_SECONDS = 120
STOP_SECONDS = 20
JOB_SECONDS = 900
WORKERS = 2
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_WEB_UI = re.compile(r"Bound MasterWebUI to \S+, and started at (http://\S+)")
_EXECUTOR = "CoarseGrainedExecutorBackend"
_REGISTERED = "Successfully registered with master"


def _java_options() -> str:
    return " ".join([*QUICK_JAVA, *spark_archive_options()])


def spark_archive() -> Path:
    """The archive of the sources as they are, packed unless it is there already."""
    # A make that runs these tests has left its own options in the environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    python = Path(sys.executable).parents[1]
    subprocess.run(["make", "spark-archive", f"VENV={python}"], cwd=ROOT, env=environment, check=True)
    return ARCHIVE


class _Daemon:
    """A master or a worker, and what it has logged."""

    def __init__(self, folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._log_file = folder / f"{name}.log"
        with self._log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def log(self) -> str:
        return self._log_file.read_text("utf-8", "replace")

    def await_line(self, pattern: re.Pattern[str] | str) -> re.Match[str]:
        """The first match in its log."""
        found: list[re.Match[str]] = []

        def is_there() -> bool:
            found.extend(re.finditer(pattern, self.log()))
            return bool(found) or self.process.poll() is not None

        wait_until(is_there, f"{self._log_file.name} has {pattern}", START_SECONDS, lambda: self.log()[-2_000:])
        assert found, self.log()
        return found[0]

    def stop(self) -> None:
        """Asks it to end, so that a worker ends its executors, and makes sure."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class SparkJob:
    """A job that was submitted. Its log goes into a file, as a pipe that is not read would stop it."""

    process: subprocess.Popen[str]
    log_file: Path

    def log(self) -> str:
        """What Spark and the job wrote to stderr."""
        return self.log_file.read_text("utf-8", "replace")

    def kill(self) -> None:
        """Kills the driver, both of its processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class SparkCluster:
    """A master and two workers, running inside a `with`. The only Python on the workers' PATH has nothing installed."""

    def __init__(self, archive: Path, worker_environment: Mapping[str, str]) -> None:
        """`worker_environment` is what executors inherit from their workers."""
        import pyspark

        self._archive = archive
        self._worker_environment = worker_environment
        self._home = Path(pyspark.__file__).parent

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-cluster-")))
            self._lay_out()
            master = self._started(stack, "master", {}, "--host", "127.0.0.1")
            self.url = master.await_line(_MASTER_URL)[1]
            self.web_ui = master.await_line(_WEB_UI)[1]
            self._workers = [self._start_worker(stack, f"worker-{number}") for number in range(WORKERS)]
            for worker in self._workers:
                worker.await_line(_REGISTERED)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def submitted(
        self,
        program: Path,
        arguments: Sequence[str],
        settings: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        sends_archive: bool = False,
    ) -> SparkJob:
        """spark-submit of a program, in a process group of its own.

        With the archive, which each executor unpacks; otherwise with what the workers' machine has of it unpacked.
        """
        unpacked = str(self._unpacked / "pex")
        defaults = SMALL | {
            "spark.driver.extraJavaOptions": f"{_java_options()} -Djava.io.tmpdir={self.folder}",
            "spark.executor.extraJavaOptions": f"{_java_options()} -Djava.io.tmpdir={self.folder}",
            "spark.executor.memory": "512m",
        }
        if sends_archive:
            defaults["spark.archives"] = f"{self._archive}#environment"
        words = conf_words(defaults | dict(settings))
        interpreters = {
            "PYSPARK_DRIVER_PYTHON": unpacked,
            "PYSPARK_PYTHON": "./environment/pex" if sends_archive else unpacked,
        }
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="job-", suffix=".log", delete=False) as log:
            process = subprocess.Popen(
                [str(self._home / "bin" / "spark-submit"), "--master", self.url, *words, str(program), *arguments],
                cwd=self.folder,
                env=self._environment | interpreters | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        job = SparkJob(process, Path(log.name))
        self._stack.callback(job.kill)
        return job

    def executors(self) -> list[int]:
        """The process ids of all executors."""
        workers = {worker.process.pid for worker in self._workers}
        command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        lines = [line.split(maxsplit=2) for line in listed.splitlines() if _EXECUTOR in line]
        return [int(process) for process, parent, _ in lines if int(parent) in workers]

    def _lay_out(self) -> None:
        """The driver's copy of the archive, and the workers' Python."""
        self._unpacked = self.folder / "driver"
        self._unpacked.mkdir()
        subprocess.run(["tar", "-xzf", self._archive, "-C", self._unpacked], check=True)
        venv.create(self.folder / "python", symlinks=True)
        java = Path(java_command()).resolve().parents[1]
        self._environment = {
            "PATH": os.pathsep.join([str(self.folder / "python" / "bin"), "/usr/bin", "/bin"]),
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _java_options(),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder),
        }

    def _start_worker(self, stack: ExitStack, name: str) -> _Daemon:
        words = (
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "600m",
            "--work-dir",
            str(self.folder / "work" / name),
        )
        return self._started(stack, name, self._worker_environment, *words, self.url)

    def _started(self, stack: ExitStack, name: str, environment: Mapping[str, str], *words: str) -> _Daemon:
        kind = "master.Master" if name == "master" else "worker.Worker"
        program = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        ports = ("--port", "0", "--webui-port", "0")
        daemon = _Daemon(self.folder, name, [*program, *ports, *words], self._environment | dict(environment))
        stack.callback(daemon.stop)
        return daemon
