"""Signals to real processes: the first ends a removal after its step, the second at once, and neither is lost."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, environment
from tests.cli.crashed_cluster import CLUSTER_ID, ORPHANS, CrashedClusterOnDisk, planned_keys
from tests.rigs.stopped_process import (
    FINISHING,
    FULL_DISK,
    INT,
    TERM,
    TWICE,
    Moment,
    Stop,
    let_the_lease_run_out,
    pasted,
    run_until,
)
from tieredctl.cli.arguments import clock_ms
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model import interruption
from tieredctl.model.interruption import pause
from tieredctl.ops.guards.lease import find_lease, lease_held
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.protocol import StoredObject
from tieredctl.storage.retrying import RetryingStore

PROMPTLY = 60
"""Seconds: less than any of tieredctl's own timeouts together with its retries."""
RESUMES = "tieredctl: Interrupted.\n  Run it again, it resumes where it stopped: tieredctl orphans apply "
STARTS_AGAIN = "tieredctl: Interrupted.\n  Run it again: it starts from the beginning.\n"
DELETION = "remove tiered/"


def apply_until(planned: CrashedClusterOnDisk, moment: Moment, stop: Stop) -> Outcome:
    confirmed = ("--offline-metadata", "--log-dir", planned.log_dir, "--yes", "--cluster-id", CLUSTER_ID)
    return run_until(moment, stop, planned.bucket, ["orphans", "apply", planned.plan_file, *confirmed])


def recorded(planned: CrashedClusterOnDisk) -> set[str]:
    """The keys whose removal the receipts have."""
    lines = [json.loads(line) for line in planned.receipts_file.read_text().splitlines()]
    return {line["key"] for line in lines if line.get("step") == "removed"}


def gone(planned: CrashedClusterOnDisk) -> set[str]:
    return planned_keys(planned.plan_file) - set(planned.objects())


def lease_is_free(planned: CrashedClusterOnDisk) -> bool:
    lease = planned.bucket / LEASE_KEY
    return not lease.exists() or bool(json.loads(lease.read_bytes())["expiresMs"] == 0)


@pytest.mark.parametrize(
    ("moment", "stop"),
    [
        (Moment("open "), INT),
        (Moment("lease", 1), TERM),
        (Moment("quarantine", 20), TERM),
    ],
)
def test_a_removal_that_is_interrupted_records_what_it_did_and_gives_its_lease_back(
    planned: CrashedClusterOnDisk, moment: Moment, stop: signal.Signals
) -> None:
    stopped = apply_until(planned, moment, stop)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (130, False)
    assert RESUMES in stopped.err
    assert not gone(planned) or recorded(planned) == gone(planned)
    assert lease_is_free(planned)
    assert pasted(stopped).exit_code == 0
    assert gone(planned) == planned_keys(planned.plan_file)


LAST_STEP = [Moment("lease", 2), Moment(DELETION, 1), Moment(DELETION, ORPHANS), Moment("lease", 3)]


@pytest.mark.parametrize("stop", [INT, TERM])
@pytest.mark.parametrize("moment", LAST_STEP, ids=str)
def test_a_removal_that_is_interrupted_in_its_last_step_is_finished_and_checked(
    planned: CrashedClusterOnDisk, moment: Moment, stop: signal.Signals
) -> None:
    stopped = apply_until(planned, moment, stop)

    demand_all_removed(planned, stopped)


def demand_all_removed(planned: CrashedClusterOnDisk, stopped: Outcome) -> None:
    assert (stopped.exit_code, "Traceback" in stopped.err) == (0, False), stopped.err
    assert FINISHING in stopped.err
    assert f"Removed {ORPHANS} of {ORPHANS}, " in stopped.err
    assert "Run it again" not in stopped.err
    assert gone(planned) == recorded(planned) == planned_keys(planned.plan_file)
    assert lease_is_free(planned)


def test_a_removal_for_whose_end_there_is_no_room_says_what_it_removed(planned: CrashedClusterOnDisk) -> None:
    stopped = apply_until(planned, Moment(DELETION, ORPHANS), FULL_DISK)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (1, False), stopped.err
    assert f"Removed {ORPHANS} of {ORPHANS}, " in stopped.err
    assert "No space left on device" in stopped.err
    assert gone(planned) == recorded(planned) == planned_keys(planned.plan_file)
    assert planned.apply().exit_code == 0


def apply_with_signals_in_the_check(planned: CrashedClusterOnDisk, *signals: signal.Signals) -> Outcome:
    """They come right before the metadata is asked for owners of what was removed."""
    program = (
        "import os, sys\n"
        "from tieredctl.cli.main import main\n"
        "from tieredctl.ops.orphan_removal.apply import Removal\n"
        "check = Removal._having_owners\n"
        "def interrupted(self, receipts):\n"
        f"    for number in {[*map(int, signals)]}:\n"
        "        os.kill(os.getpid(), number)\n"
        "    return check(self, receipts)\n"
        "Removal._having_owners = interrupted\n"
        "main()\n"
    )
    confirmed = ["--offline-metadata", "--log-dir", str(planned.log_dir), "--yes", "--cluster-id", CLUSTER_ID]
    done = ended(program, "orphans", "apply", str(planned.plan_file), *confirmed)
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("stop", [INT, TERM])
def test_a_check_after_the_last_step_that_is_interrupted_is_finished(
    planned: CrashedClusterOnDisk, stop: signal.Signals
) -> None:
    stopped = apply_with_signals_in_the_check(planned, stop)

    demand_all_removed(planned, stopped)


def test_a_second_signal_in_the_check_stops_at_once_and_what_is_said_does_the_check(
    planned: CrashedClusterOnDisk,
) -> None:
    stopped = apply_with_signals_in_the_check(planned, INT, TERM)

    assert (stopped.exit_code, "Removed" in stopped.err) == (130, False)
    assert "tieredctl: Stopped at once.\n  Run it again, it resumes where it stopped: " in stopped.err
    let_the_lease_run_out(planned.bucket, TWICE)
    resumed = pasted(stopped)
    assert (resumed.exit_code, f"Removed {ORPHANS} of {ORPHANS}, " in resumed.err) == (0, True)


def test_before_the_last_step_an_interruption_says_that_the_step_is_finished_first(
    planned: CrashedClusterOnDisk,
) -> None:
    stopped = apply_until(planned, Moment("lease", 1), INT)

    assert FINISHING + RESUMES in stopped.err
    assert not gone(planned)


def test_a_second_signal_stops_within_a_step_and_another_run_finishes_it(planned: CrashedClusterOnDisk) -> None:
    stopped = apply_until(planned, Moment(DELETION, 3), TWICE)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (130, False)
    assert (
        "tieredctl: Stopped at once.\n  Run it again, it resumes where it stopped: tieredctl orphans apply "
        in stopped.err
    )
    assert len(gone(planned)) == 2
    let_the_lease_run_out(planned.bucket, TWICE)
    assert pasted(stopped).exit_code == 0
    assert gone(planned) == planned_keys(planned.plan_file)


def ended(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """How a Python program ended, and what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PROMPTLY,
        check=False,
    )


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


@pytest.mark.parametrize("signals", [[INT], [TERM], [INT, TERM]], ids=["int", "term", "twice"])
@pytest.mark.parametrize("kind", ["store", "broker", "control plane"])
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


def test_an_interruption_that_python_swallows_is_raised_again(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from tieredctl.cli import main\n"
        "class Cleared:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), 2)\n"
        "        time.sleep(0.01)\n"
        "def run(words):\n"
        "    Cleared()\n"
        "    time.sleep(3600)\n"
        "main.invoke = run\n"
        "main.main(['orphans', 'scan'])\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr) == (130, STARTS_AGAIN)


@pytest.mark.parametrize("stop", [INT, TERM])
def test_what_does_not_end_by_itself_is_ended(stop: signal.Signals) -> None:
    program = (
        "import os, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from tieredctl.cli import main\n"
        "from tieredctl.cli.trouble import interruption\n"
        "interruption._SECONDS_TO_END = 0.2\n"
        "def run(words):\n"
        "    with ThreadPoolExecutor(2) as threads:\n"
        "        threads.submit(time.sleep, 3600)\n"
        f"        os.kill(os.getpid(), {int(stop)})\n"
        "main.invoke = run\n"
        "main.main(['orphans', 'apply', 'plan'])\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr) == (130, f"{RESUMES}plan\n")


def test_what_does_not_end_after_its_step_is_ended() -> None:
    program = (
        "import os, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from tieredctl.cli import main\n"
        "from tieredctl.cli.trouble import interruption\n"
        "from tieredctl.model.interruption import unbroken\n"
        "interruption._SECONDS_TO_END = interruption._SECONDS_BETWEEN_LOOKS = 0.2\n"
        "def run(words):\n"
        "    with ThreadPoolExecutor(2) as threads:\n"
        "        threads.submit(time.sleep, 3600)\n"
        "        with unbroken():\n"
        "            os.kill(os.getpid(), 15)\n"
        "            time.sleep(1)\n"
        "            print('finished', flush=True)\n"
        "main.invoke = run\n"
        "main.main(['orphans', 'apply', 'plan'])\n"
    )
    done = ended(program)

    assert (done.returncode, done.stdout) == (130, "finished\n")
    assert done.stderr == f"{FINISHING}{RESUMES}plan\n"


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
    program = (
        "import os, time\n"
        "from tieredctl.cli import main\n"
        "def run(words):\n"
        "    os.kill(os.getpid(), 2)\n"
        "    time.sleep(3600)\n"
        "main.invoke = run\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        main.main(['orphans', 'scan'])\n"
        "    except SystemExit as end:\n"
        "        print(end.code)\n"
    )
    done = ended(program)

    assert (done.returncode, done.stdout, done.stderr) == (0, "130\n130\n", STARTS_AGAIN * 2)


@pytest.mark.parametrize("stop", [INT, TERM])
def test_a_signal_after_the_end_of_the_work_takes_nothing_from_its_exit_code(stop: signal.Signals) -> None:
    program = (
        "import atexit, os, sys, time\n"
        "from tieredctl.cli import main\n"
        "def clear_up():\n"
        f"    os.kill(os.getpid(), {int(stop)})\n"
        "    time.sleep(3600)\n"
        "atexit.register(clear_up)\n"
        "main.invoke = lambda words: 3\n"
        "sys.argv = ['tieredctl', 'orphans', 'scan']\n"
        "main.main()\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr) == (3, "")


def test_a_signal_in_the_last_step_leaves_nothing_behind_that_would_end_the_process() -> None:
    program = (
        "import os, signal, sys\n"
        "from tieredctl.cli import main\n"
        "from tieredctl.model.interruption import nothing_is_left, unbroken\n"
        "end_process = main.end_process\n"
        "def seen_to_end(code):\n"
        "    print(signal.getitimer(signal.ITIMER_REAL))\n"
        "    end_process(code)\n"
        "main.end_process = seen_to_end\n"
        "def run(words):\n"
        "    with unbroken():\n"
        "        os.kill(os.getpid(), 15)\n"
        "        nothing_is_left()\n"
        "    return 3\n"
        "main.invoke = run\n"
        "sys.argv = ['tieredctl', 'orphans', 'purge']\n"
        "main.main()\n"
    )
    done = ended(program)

    assert (done.returncode, done.stdout, done.stderr) == (3, "(0.0, 0.0)\n", FINISHING)


def test_a_step_within_a_step_is_not_broken_off_and_what_breaks_the_last_one_is_not_forgotten() -> None:
    program = (
        "import os\n"
        "from tieredctl.cli import main\n"
        "from tieredctl.errors import ErrorCode, TieredctlError\n"
        "from tieredctl.model.interruption import nothing_is_left, unbroken\n"
        "def run(words):\n"
        "    with unbroken():\n"
        "        os.kill(os.getpid(), 15)\n"
        "        with unbroken():\n"
        "            print('whole', flush=True)\n"
        "        raise TieredctlError(ErrorCode.UNWRITABLE, 'It broke.')\n"
        "        nothing_is_left()\n"
        "main.invoke = run\n"
        "main.main(['orphans', 'apply', 'plan'])\n"
    )
    done = ended(program)

    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", f"{FINISHING}{RESUMES}plan\n")
