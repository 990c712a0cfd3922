"""Signals to real processes, whatever they wait for and whoever runs the command line: none is lost."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.command_line import environment
from tests.rigs.stopped_process import FINISHING, INT, PROMPTLY, RESUMES, TERM, ended
from tieredctl.cli.arguments import clock_ms
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.lease import find_lease, lease_held
from tieredctl.ports.object_store import StoredObject
from tieredctl.process import interruption
from tieredctl.process.interruption import pause
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.retrying import RetryingStore

STARTS_AGAIN = "tieredctl: Interrupted.\n  Run it again: it starts from the beginning.\n"


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A server that never answers, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PROMPTLY)
        yield server, "{}:{}".format(*server.getsockname())


def waiting_words(kind: str, address: str) -> list[str]:
    if kind == "store":
        return ["remote", "ls", "--store", "s3://bucket", "--store-option", f"endpoint=http://{address}"]
    if kind == "broker":
        return ["metadata", "segments", "--bootstrap-server", address]
    control_plane = f"postgresql://role@{address}/inkless?sslmode=disable"
    return ["diskless", "status", "--control-plane", control_plane, "--store", "memory:"]


@pytest.mark.parametrize(
    ("kind", "signals"),
    [
        ("broker", [INT]),
        *(
            pytest.param(kind, signals, marks=pytest.mark.exhaustive)
            for kind in ("store", "broker", "control plane")
            for signals in ([INT], [TERM], [INT, TERM])
            if (kind, signals) != ("broker", [INT])
        ),
    ],
)
def test_a_command_that_waits_for_a_silent_server_ends(kind: str, signals: list[signal.Signals]) -> None:
    with listening() as (server, address):
        command = [sys.executable, "-m", "tieredctl", *waiting_words(kind, address)]
        variables = environment(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y", AWS_REGION="us-east-1")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as run:
            connection, _ = server.accept()
            for number in signals:
                run.send_signal(number)
            out, err = run.communicate(timeout=PROMPTLY)
            connection.close()

    assert (run.returncode, out, "Traceback" in err) == (130, "", False)
    assert len(signals) > 1 or err.endswith(STARTS_AGAIN)


def test_a_pause_before_a_retry_ends() -> None:
    with listening() as (server, address):
        command = [sys.executable, "-m", "tieredctl", *waiting_words("store", address)]
        variables = environment(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y", AWS_REGION="us-east-1")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as run:
            for _ in range(3):
                server.accept()[0].close()
            run.send_signal(INT)
            _, err = run.communicate(timeout=PROMPTLY)

    assert (run.returncode, err) == (130, STARTS_AGAIN)


def ended_in(run: str, words: str, *before: str, main: str = "main.main(words)") -> subprocess.CompletedProcess[str]:
    """How a program ended whose command does this, of which each line is one of Python's."""
    lines = (
        "import atexit, os, signal, sys, time",
        "from concurrent.futures import ThreadPoolExecutor",
        "from tieredctl.cli import main",
        "from tieredctl.cli.trouble import interruption",
        "from tieredctl.errors import ErrorCode, TieredctlError",
        "from tieredctl.process.interruption import mark_complete, critical_section",
        f"words = {words.split()}",
        "sys.argv = ['tieredctl', *words]",
        *(textwrap.dedent(one) for one in before),
        "def run(words):",
        textwrap.indent(textwrap.dedent(run), "    "),
        "main.invoke = run",
        textwrap.dedent(main),
    )
    return ended("\n".join(lines))


def test_an_interruption_that_python_swallows_is_raised_again() -> None:
    cleared = """\
    class Cleared:
        def __del__(self):
            os.kill(os.getpid(), 2)
            time.sleep(0.01)
    """
    done = ended_in("Cleared()\ntime.sleep(3600)", "orphans scan", cleared)

    assert (done.returncode, done.stderr) == (130, STARTS_AGAIN)


@pytest.mark.parametrize("stop", [INT, pytest.param(TERM, marks=pytest.mark.exhaustive)])
def test_what_does_not_end_by_itself_is_ended(stop: signal.Signals) -> None:
    run = f"""\
    with ThreadPoolExecutor(2) as threads:
        threads.submit(time.sleep, 3600)
        os.kill(os.getpid(), {int(stop)})
    """
    done = ended_in(run, "orphans apply plan", "interruption._SECONDS_TO_END = 0.2")

    assert (done.returncode, done.stderr) == (130, f"{RESUMES}plan\n")


def test_what_does_not_end_after_its_step_is_ended() -> None:
    run = """\
    with ThreadPoolExecutor(2) as threads:
        threads.submit(time.sleep, 3600)
        with critical_section():
            os.kill(os.getpid(), 15)
            time.sleep(1)
            print('finished', flush=True)
    """
    quickly = "interruption._SECONDS_TO_END = interruption._SECONDS_BETWEEN_LOOKS = 0.2"

    done = ended_in(run, "orphans apply plan", quickly)

    assert (done.returncode, done.stdout, done.stderr) == (130, "finished\n", f"{FINISHING}{RESUMES}plan\n")


def test_what_does_not_end_is_ended_also_where_the_clocks_signal_comes_to_another_thread() -> None:
    run = """\
    with ThreadPoolExecutor(2) as threads:
        threads.submit(time.sleep, 3600)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        os.kill(os.getpid(), 15)
    """

    done = ended_in(run, "orphans apply plan", "interruption._SECONDS_TO_END = 1")

    assert (done.returncode, done.stderr) == (130, f"{RESUMES}plan\n")


def test_a_lease_is_given_back_to_a_store_that_has_to_be_asked_twice() -> None:
    class ThrottlesAtTheEnd(MemoryStore):
        is_busy = False

        def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
            was_busy, self.is_busy = self.is_busy, False
            if was_busy:
                raise TieredctlError(ErrorCode.STORE_THROTTLED, "Slow down.")
            return super().replace(current, data)

    store = ThrottlesAtTheEnd()

    def work() -> None:
        with lease_held(RetryingStore(store), "test", clock_ms):
            store.is_busy = True
            interruption.request()
            pause(60)

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        interruption.forget()

    lease = find_lease(store)
    assert lease is not None
    assert lease.is_released


def test_a_command_line_runs_in_another_thread_too() -> None:
    program = (
        "import sys, threading\n"
        "from tieredctl.cli.main import main\n"
        "thread = threading.Thread(target=main, args=(['--version'],))\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    assert (done.stdout.split()[0], done.stderr) == ("tieredctl", "")


def test_a_program_that_runs_a_command_line_keeps_its_own_handlers() -> None:
    program = (
        "import os, signal, sys\n"
        "from tieredctl.cli.main import main\n"
        "numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGURG)\n"
        "def own(*_):\n"
        "    print('mine')\n"
        "signal.signal(signal.SIGALRM, own)\n"
        "before = [*map(signal.getsignal, numbers)], sys.unraisablehook\n"
        "files = len(os.listdir('/proc/self/fd'))\n"
        "for words in ['--version'], ['explain-code', 'nothing'], ['metadata', 'partition-of', 'x']:\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "    assert ([*map(signal.getsignal, numbers)], sys.unraisablehook) == before\n"
        "    assert signal.set_wakeup_fd(-1) == -1\n"
        "import threading\n"
        "for thread in threading.enumerate():\n"
        "    if thread.name == 'signals':\n"
        "        thread.join()\n"
        "assert len(os.listdir('/proc/self/fd')) == files\n"
        "signal.raise_signal(signal.SIGALRM)\n"
    )
    done = ended(program)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "mine"), done.stderr


def test_an_interruption_in_such_a_program_ends_the_command_line_alone() -> None:
    twice = """\
    for _ in range(2):
        try:
            main.main(words)
        except SystemExit as end:
            print(end.code)
    """
    done = ended_in("os.kill(os.getpid(), 2)\ntime.sleep(3600)", "orphans scan", main=twice)

    assert (done.returncode, done.stdout, done.stderr) == (0, "130\n130\n", STARTS_AGAIN * 2)


@pytest.mark.parametrize("stop", [TERM, pytest.param(INT, marks=pytest.mark.exhaustive)])
def test_a_signal_after_the_end_of_the_work_takes_nothing_from_its_exit_code(stop: signal.Signals) -> None:
    clear_up = f"""\
    def clear_up():
        os.kill(os.getpid(), {int(stop)})
        time.sleep(3600)
    atexit.register(clear_up)
    """
    done = ended_in("return 3", "orphans scan", clear_up, main="main.main()")

    assert (done.returncode, done.stderr) == (3, "")


def test_a_signal_in_the_last_step_leaves_nothing_behind_that_would_end_the_process() -> None:
    seen = """\
    end_process = main.end_process
    def seen_to_end(code):
        print(signal.getitimer(signal.ITIMER_REAL))
        end_process(code)
    main.end_process = seen_to_end
    """
    run = """\
    with critical_section():
        os.kill(os.getpid(), 15)
        mark_complete()
    return 3
    """
    done = ended_in(run, "orphans purge", seen, main="main.main()")

    assert (done.returncode, done.stdout, done.stderr) == (3, "(0.0, 0.0)\n", FINISHING)


def test_a_step_within_a_step_is_not_broken_off_and_what_breaks_the_last_one_is_not_forgotten() -> None:
    run = """\
    with critical_section():
        os.kill(os.getpid(), 15)
        with critical_section():
            print('whole', flush=True)
        raise TieredctlError(ErrorCode.UNWRITABLE, 'It broke.')
        mark_complete()
    """
    done = ended_in(run, "orphans apply plan")

    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", f"{FINISHING}{RESUMES}plan\n")
