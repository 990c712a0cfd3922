"""The process: start-up, wrong use, interruption, and readers that go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from fcntl import F_GETPIPE_SZ, fcntl, ioctl
from pathlib import Path
from struct import unpack
from termios import FIONREAD

import pytest

from tests.cli.command_line import Tieredctl, environment, own_process
from tests.metadata_logs import metadata_batches, started, write_log
from tieredctl import __version__
from tieredctl.cli.command_tree import nouns
from tieredctl.cli.main import run
from tieredctl.cli.trouble.interruption import after_interruption
from tieredctl.ops.metadata.format import COLUMNS_FROM

LIBRARIES = ["typer", "rich", "yaml", "numpy", "pyarrow", "cramjam", "crc32c", "confluent_kafka", "pyspark", "pandas"]


def left_by(what: str, *words: str | Path) -> set[str]:
    """What there is in the process once a command line has ended."""
    program = (
        "import os, sys\n"
        "from tieredctl.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print(*{what}, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True, timeout=60)
    return set(done.stderr.splitlines()[-1].split())


def loaded_by(*words: str | Path) -> set[str]:
    """The modules that a command line loads."""
    return left_by("sys.modules", *words)


def test_version_help_and_command_load_no_more_than_they_need() -> None:
    version, helped = loaded_by("--version"), loaded_by("--help")
    command = loaded_by("metadata", "partition-of", "Ex-aw3fEQIi3do0H9Y7cKQ", "0")

    assert version.isdisjoint({*LIBRARIES, "importlib.metadata", "importlib.resources"})
    assert not any(name.startswith("tieredctl.ops") for name in version)
    assert not any(name.startswith(("tieredctl.cli.commands.", "tieredctl.ops")) for name in helped)
    assert helped.isdisjoint(set(LIBRARIES) - {"typer", "rich"})
    commands = {name for name in command if name.startswith("tieredctl.cli.commands.")}
    assert {name.partition("_")[0] for name in commands} == {"tieredctl.cli.commands.metadata"}
    assert command.isdisjoint({"numpy", "pyarrow", "yaml", "confluent_kafka", "pyspark", "pandas"})


@pytest.mark.parametrize(
    "words",
    [
        ("metadata", "lookup", "orders7:0", "--epoch", "0", "--offset", "5"),
        ("explain", "orders7:0@5"),
        pytest.param(("status",), marks=pytest.mark.exhaustive),
    ],
    ids=" ".join,
)
def test_a_look_into_few_events_loads_no_more_than_columns_take(words: tuple[str, ...], captures: Path) -> None:
    loaded = loaded_by(*words, "--log-dir", captures / "kafka-4.3.1/data")

    assert loaded.isdisjoint({"pyarrow", "confluent_kafka", "pyspark", "pandas", "numpy.ma"})
    # Nobody asked for a plugin, a live cluster or a store.
    assert loaded.isdisjoint({"importlib.metadata", "secrets", "tieredctl.ops.verification.report"})
    # Nothing was found, nobody asked for a page or to be shown more, and no two clusters are compared.
    assert loaded.isdisjoint({"logging", "tieredctl.cli.pages.report", "tieredctl.kraft.difference"})
    assert not any(name.startswith(("tieredctl.storage", "tieredctl.wiring.doctor")) for name in loaded)


def test_numpy_starts_no_threads_for_linear_algebra(captures: Path) -> None:
    lookup = ("metadata", "lookup", "orders7:0", "--epoch", "0", "--offset", "5")

    threads = left_by("os.listdir('/proc/self/task')", *lookup, "--log-dir", captures / "kafka-4.3.1/data")

    assert len(threads) == 2  # the main one, and the one that wakes it for signals


def test_a_full_verification_does_not_load_pandas(captures: Path) -> None:
    capture = captures / "kafka-4.3.1"
    store = ("--store", f"file:{capture / 'remote/kafka-tiered-storage'}", "--layout", "local")

    loaded = loaded_by("verify", "--level", "full", "--log-dir", capture / "data", *store)

    assert "pyarrow" in loaded
    assert loaded.isdisjoint({"confluent_kafka", "pyspark", "pandas"})


def test_pandas_is_not_asked_what_it_knows_of_columns(tmp_path: Path) -> None:
    write_log(tmp_path, 0, metadata_batches([started(number, 0, 9) for number in range(2 * COLUMNS_FROM)]))
    export = tmp_path / "metadata.parquet"
    source = ("--log-dir", tmp_path)

    loaded = loaded_by("metadata", "format", *source)
    loaded |= loaded_by("metadata", "export", export, *source)
    loaded |= loaded_by("metadata", "format", "--export", export)

    assert "pyarrow" in loaded
    assert "pandas" not in loaded


def test_the_version_is_the_packages(tieredctl: Tieredctl) -> None:
    for words in (("--version",), ("--no-color", "--version"), ("--version", "metadata")):
        assert tieredctl(*words) == (0, f"tieredctl {__version__}\n", ""), words


def test_every_noun_in_the_help_exists(tieredctl: Tieredctl) -> None:
    every = tieredctl("--help").out
    for noun, sentence in nouns().items():
        outcome = tieredctl(noun, "--help")
        assert (noun in every, outcome.exit_code) == (True, 0), noun
        assert sentence in " ".join(outcome.out.split()), noun
    for words in ((), ("metadata",), ("store",), ("remote",)):
        outcome = tieredctl(*words)
        assert (outcome.exit_code, "Commands:" in outcome.err + outcome.out) == (2, True), words


WRONG_USE = {
    "bogus": "There is no command 'bogus'.",
    "metadata segmets": "Did you mean segments?",
    "--bogus": "Run `tieredctl --help` ",
    "remote ls --bogus": "  Run `tieredctl remote ls --help` to see what it takes.\n",
    "remote ls --stroe x": "Did you mean --store?",
    "remote ls -o xml": "Give one of table, wide, json, ",
    "metadata segments --partition -1": "Give a whole number ",
    "metadata lookup t:0 --epoch x --offset 1": "'x' is not a value of --epoch.",
    "metadata lookup t:0 --epoch 1": "No --offset was given.",
    "metadata lookup t --epoch 1 --offset 1": "'t' is not TOPIC:PARTITION.",
    "metadata segments": "There is nothing to read metadata from.",
    "metadata segments --log-dir /no": "There is no /no.",
    "metadata segments --log-dir /dev/null": "/dev/null is a file, not a broker's log directory.",
    "metadata segments --log-dir /no --export /no": "--log-dir, --bootstrap-server, --export ",
    "metadata stuck --older-than soon --log-dir /no": "'soon' is not a duration.",
    "store inspect": "No PATH was given.",
    "store inspect --kind x y": "'x' is not a value of --kind.",
    "completions tcsh": "'tcsh' is not a value of SHELL.",
    "completions": "Give one of bash, zsh, fish.",
}


def test_wrong_use_is_a_sentence_and_exit_2(tieredctl: Tieredctl) -> None:
    for line, said in WRONG_USE.items():
        outcome = tieredctl(*line.split())
        # The sentence, and what to do.
        assert (outcome.exit_code, outcome.out, outcome.err.count("\n")) == (2, "", 2), line
        assert outcome.err.startswith("tieredctl: "), line
        assert said in outcome.err, line


def test_an_interruption_exits_130_at_once(captures: Path) -> None:
    words = ["metadata", "format", "--log-dir", str(captures / "kafka-4.3.1/data")]
    command = [sys.executable, "-m", "tieredctl", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pipe = process.stdout.fileno()
        deadline = time.monotonic() + 60
        # Nobody reads: it is at work until the pipe is full, and waits from then on.
        while unpack("i", ioctl(pipe, FIONREAD, b"\0" * 4))[0] < fcntl(pipe, F_GETPIPE_SZ):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"tieredctl: Interrupted.\n  Run it again: it starts from the beginning.\n"


def test_an_interruption_before_the_command_line_is_read() -> None:
    program = (
        "import os\n"
        "from tieredctl.cli import main\n"
        "main.run = lambda words: os.kill(os.getpid(), 2)\n"
        "main.main(['metadata'])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 130
    assert done.stderr.startswith("tieredctl: Interrupted.\n")


def test_streams_may_be_closed(captures: Path) -> None:
    words = f"store inspect {captures}/kafka-4.3.1/data/meta.properties /no"
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        script = f"{sys.executable} -m tieredctl {words} {closed}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment(), check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), closed
        assert "/no" not in done.stdout, closed  # what was meant for a closed stderr


def test_a_narrow_terminal_encoding_is_not_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text("version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    strange = path.rename(tmp_path / "Größe-partition.metadata")
    outcome = own_process("store", "inspect", strange, "--kind", "partition-metadata", PYTHONIOENCODING="ascii")
    assert outcome.exit_code == 0
    assert "Gr\\xf6\\xdfe" in outcome.out


def test_running_twice_in_one_process_is_fine(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["metadata", "partition-of", "Ex-aw3fEQIi3do0H9Y7cKQ", "0"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1


def test_memory_that_runs_out_is_reported(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    def exhausted(path: object) -> None:
        raise MemoryError

    monkeypatch.setattr(os, "scandir", exhausted)
    outcome = tieredctl("remote", "ls", "--store", "file:/tmp")
    assert outcome == (1, "", "tieredctl: There is not enough memory.\n")


GOES_ON = [
    ("verify --level full", False),
    ("orphans scan", False),
    ("orphans scan --resume file", True),
    ("orphans scan --resume=file", True),
    ("orphans plan --to plan", False),
    ("orphans apply plan", True),
    ("--context prod orphans apply plan", True),
    ("orphans apply plan --dry-run", False),
    ("orphans restore receipts", True),
    ("orphans purge", True),
    ("orphans purge --dry-run", False),
    ("partition remove x", False),
    ("partition remove x --apply", True),
    ("recover indexes x --apply", True),
    ("recover metadata --apply", True),
    ("recover metadata --apply --dry-run", False),
    ("recover log-starts plan --log-dir folder --apply", True),
    ("snapshot clean folder --apply", True),
    ("backup prune --from place --keep-last 1 --apply", True),
    ("backup prune --from place --keep-last 1", False),
    ("topic disable orders --apply", False),
    ("remote records orders", False),
    ("remote records orders --output-dir folder", True),
    ("remote records orders --output-dir=folder", True),
    ("wal restore --to folder", False),
]


def test_an_interruption_promises_to_continue_only_where_the_command_does() -> None:
    for words, goes_on in GOES_ON:
        expected = f"Run it again, it resumes where it stopped: tieredctl {words}"
        said = after_interruption(words.split())
        assert said == (expected if goes_on else "Run it again: it starts from the beginning.")


def test_what_is_to_be_pasted_is_quoted_and_not_shown_where_it_cannot_be_as_it_is() -> None:
    for word in ("secret_access_key=s3cr3t", "two\nlines"):
        said = after_interruption(["orphans", "restore", "receipts", "--store-option", word])
        assert said == "Run it again: it resumes where it stopped."
    said = after_interruption(["orphans", "restore", "my receipts"])
    assert said.endswith(" tieredctl orphans restore 'my receipts'")
