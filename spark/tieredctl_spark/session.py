"""A Spark session: the active one, or a quiet one of our own."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkImportError, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.interruption import cleanup_section
from tieredctl_spark.failures import reason, spark_failures

OLDEST_JAVA = 17
_LAUNCHED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
_REMOTE, _MASTER = "spark.remote", "spark.master"
_REMOTE_VARIABLE = "SPARK_REMOTE"
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable by which PySpark knows that functions are those of Spark Connect; it never removes it."""
_CONNECT_PORT = 15002
_ANSWER_SECONDS = 30
_DEFAULTS = {
    "spark.app.name": "tieredctl",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Where in our sources a column was made helps nobody, and telling the JVM of each takes longer than making it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    # This JVM lives for a minute and hands rows to Python: compiling its code well would take longer than it saves. In
    # the 48 MB that Java then has for code, it would soon throw code away, and compile it again.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
}
_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_WITHOUT_SPARK = "What is a command, not a job, also runs with --engine local."
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

# Where the JVM of this process logs: it outlives its sessions, and the next one may need its log.
_jvm_log: Path | None = None


def has_jvm(session: SparkSession) -> bool:
    """Whether its driver is this process's JVM; through Spark Connect it is a server's."""
    return hasattr(session, "_jvm")


@contextmanager
def spark_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The active session, as it is; without one, a session made with `settings`, which is stopped in the end.

    Our own runs on this machine unless `spark.master` says otherwise, and logs to a file that is kept only when
    something fails. With `spark.remote`, or PySpark's own variable SPARK_REMOTE, it is one of that Spark Connect
    server, which has to answer within half a minute. Raises TieredctlError: `missing-extra` without a suitable Java, or
    without the packages of `pyspark[connect]`; `usage`, `spark-failed`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if _REMOTE_VARIABLE in os.environ and not {_REMOTE, _MASTER} & settings.keys():
        settings = {**settings, _REMOTE: os.environ[_REMOTE_VARIABLE]}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with _connected(settings) if _REMOTE in settings else _local(settings) as session:
            _set_handlers(handlers if _REMOTE in settings else _cancelling_first(session, handlers))
            yield session
    except TieredctlError as error:
        raise _with_log(error) from None
    except KeyboardInterrupt:
        _remove_jvm_log()  # an interrupted process ends without its exit functions
        raise
    finally:
        _set_handlers(handlers)


def _set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None:  # not Python's
                signal.signal(number, handler)


def _cancelling_first(session: SparkSession, handlers: Mapping[signal.Signals, Any]) -> dict[signal.Signals, Any]:
    """Handlers that first cancel the session's jobs, for whose end PySpark waits whatever is raised. PySpark's own is
    for SIGINT alone, and takes a second one for a first."""
    is_cancelled = False

    def then(handler: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            nonlocal is_cancelled
            was_cancelled, is_cancelled = is_cancelled, True
            try:
                if not was_cancelled:
                    session.sparkContext.cancelAllJobs()
            finally:
                handler(number, frame)

        return handle

    return {number: then(handler) for number, handler in handlers.items() if callable(handler)}


@contextmanager
def _local(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    # Py4J logs what it raises, and without a handler Python would write that to stderr.
    logging.getLogger().addHandler(logging.NullHandler())
    with spark_failures():
        session = _started(settings)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _connected(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of a Spark Connect server."""
    if not _is_address(settings[_REMOTE]) or _MASTER in settings:
        message = f"{_REMOTE} takes the address of a Spark Connect server, sc://HOST:PORT, and excludes {_MASTER}."
        raise TieredctlError(ErrorCode.USAGE, message)
    was_connected = _CONNECT_MODE in os.environ
    try:
        with spark_failures():
            try:
                _demand_answer(settings[_REMOTE])
                session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
            except PySparkImportError as error:
                message = f"{_REMOTE} needs more packages: {error}"
                hint = "Install them with `pip install 'pyspark[connect]'`."
                raise TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint) from None
        try:
            yield session
        finally:
            session.stop()
    finally:
        if not was_connected:
            os.environ.pop(_CONNECT_MODE, None)


def _demand_answer(url: str) -> None:
    """PySpark itself would try for ten minutes and more, without a word, and let no signal through."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(url).toChannel() as channel:
        import grpc  # type: ignore[import-untyped]  # not before: PySpark tells what is missing

        try:
            grpc.channel_ready_future(channel).result(_ANSWER_SECONDS)
        except grpc.FutureTimeoutError:
            parts = urlsplit(url)
            message = f"No Spark Connect server answers at {parts.hostname}:{parts.port or _CONNECT_PORT}"
            hint = "Is it running, and can it be reached from here?"
            raise TieredctlError(ErrorCode.SPARK_FAILED, f"{message} within {_ANSWER_SECONDS} s.", hint=hint) from None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.scheme == "sc" and parts.hostname and (parts.port is None or parts.port))
    except ValueError:
        return False


def _started(settings: Mapping[str, str]) -> SparkSession:
    by_spark_submit = _LAUNCHED_BY_SPARK_SUBMIT in os.environ
    if not by_spark_submit:
        # Without it, workers would run whatever `python3` is. spark-submit runs driver and workers by the same name.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setAll(list(_configuration(settings, by_spark_submit).items()))
    gateway = None if by_spark_submit or SparkContext._gateway else _launched_jvm(conf)
    SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.getOrCreate()


def _configuration(settings: Mapping[str, str], by_spark_submit: bool) -> dict[str, str]:
    """Our settings would override spark-submit's, so there only the given ones are set."""
    if by_spark_submit:
        return dict(settings)
    master = settings.get(_MASTER, "local[*]")
    local = _LOCAL_DEFAULTS if _LOCAL_MASTER.fullmatch(master) else {}
    return {_MASTER: master} | _DEFAULTS | local | dict(settings)


def _launched_jvm(conf: SparkConf) -> Any:
    global _jvm_log  # noqa: PLW0603 - PySpark has one JVM for a process
    java = _demand_java()
    descriptor, name = mkstemp(prefix="tieredctl-spark-", suffix=".log")
    _jvm_log = Path(name)
    atexit.register(_remove_jvm_log)
    with os.fdopen(descriptor, "wb") as output:
        try:
            with cleanup_section():  # a JVM to which nothing was connected yet would not notice that this process ends
                return launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            _demand_new_enough(java)
            why = reason(_jvm_log.read_text("utf-8", "replace"))
            raise TieredctlError(ErrorCode.SPARK_FAILED, f"Spark did not start: {why}") from None


def _remove_jvm_log() -> None:
    global _jvm_log  # noqa: PLW0603 - as above
    if _jvm_log is not None:
        _jvm_log.unlink(missing_ok=True)
        _jvm_log = None


def _with_log(error: TieredctlError) -> TieredctlError:
    if error.code is not ErrorCode.SPARK_FAILED or _jvm_log is None:
        return error
    atexit.unregister(_remove_jvm_log)
    hint = f"Spark's own log is {_jvm_log}. {_WITHOUT_SPARK}"
    return TieredctlError(ErrorCode.SPARK_FAILED, error.message, hint=hint)


def _demand_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        where = f"in JAVA_HOME, {home}" if home else "on the PATH"
        raise _java_missing(f"Spark needs Java {OLDEST_JAVA} or later, but there is none {where}.")
    return java


def _demand_new_enough(java: str) -> None:
    """Spark's own message for an old Java is a stack trace."""
    version_text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = _JAVA_VERSION.search(version_text)
    if version and int(version[1]) < OLDEST_JAVA:
        raise _java_missing(f"Spark needs Java {OLDEST_JAVA} or later, but {java} is Java {version[1]}.")


def _java_missing(message: str) -> TieredctlError:
    hint = f"Install Java {OLDEST_JAVA} and set JAVA_HOME. {_WITHOUT_SPARK}"
    return TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint)
