"""Each command that a command prints runs as it is printed, in a shell, and does not end as the run that printed it.

From a few roots on what captured clusters left, the printed commands are followed, and theirs, until no new one comes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID
from tieredctl.cli.findings.remedies import Remedies
from tieredctl.cli.typed_words import typed
from tieredctl.errors import ExitCode
from tieredctl.model.findings import FINDING_KINDS
from tieredctl.model.pasteable import pasteable

_PRINTED = re.compile(r"(?:^|[:.;,] | {2,})(tieredctl [a-z].*)$", re.MULTILINE)
_CONTINUED = " \\\n"
_BLANK = re.compile(r"(?<![\w=/.-])(?:HOST:PORT|URL|DIR|FILE|PLAN|ID)\b")
"""What a run does not know is left to its reader, in capitals."""
_WORDS = """tieredctl() { printf '%s\\0' "$@"; }; """
_CONFIRMED = {"orphans apply": ("--yes", "--cluster-id", CLUSTER_ID)}
"""What is asked for on a terminal, by the command that asks."""


def printed_commands(outcome: Outcome) -> list[str]:
    """The commands that a run tells to type, each once."""
    text = f"{outcome.out}\n{outcome.err}".replace(_CONTINUED, " ")
    found = (re.sub(" +", " ", one).rstrip(" .") for one in _PRINTED.findall(text))
    return [one for one in dict.fromkeys(found) if not _BLANK.search(one)]


def words_in_a_shell(command: str) -> list[str]:
    """The words that bash would give to tieredctl."""
    done = subprocess.run(["bash", "-c", _WORDS + command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), command
    return done.stdout.split("\0")[:-1]


def is_again(words: Sequence[str], run: Sequence[str]) -> bool:
    """Whether a command line only repeats what ran, however that showed it."""
    said, ran = typed(words), typed(run)
    return (said.command, said.arguments) == (ran.command, ran.arguments) and {*said.options} <= {*ran.options}


@dataclass
class Follower:
    """Runs what is printed in this folder, and what that prints; of commands that differ in values alone, the first."""

    tieredctl: Tieredctl
    seen: set[tuple[str, frozenset[str]]] = field(default_factory=set)
    """Command and options."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """What was run, and what is wrong with it."""

    def follow(self, words: Sequence[str], printed_by: Outcome | None = None) -> None:
        named = typed(words)
        shape = (named.command, frozenset(name for name, _ in named.options))
        if shape in self.seen:
            return
        self.seen.add(shape)
        outcome = self.tieredctl(*words, *_CONFIRMED.get(named.command, ()))
        self.faults += [(" ".join(words), fault) for fault in _faults(outcome, printed_by)]
        if f"`tieredctl {named.command}`" in outcome.err:
            self.faults.append((" ".join(words), "its hint leads to it"))
        for command in printed_commands(outcome):
            following = words_in_a_shell(command)
            if is_again(following, words):
                self.faults.append((" ".join(words), "it tells to run it again"))
            self.follow(following, outcome)


def _faults(outcome: Outcome, printed_by: Outcome | None) -> Iterator[str]:
    if printed_by is not None and outcome.exit_code in (ExitCode.FAILURE, ExitCode.USAGE):
        yield outcome.err
    if outcome == printed_by:
        yield "it ends as what printed it"
    yield from (f"an ellipsis in {one}" for one in printed_commands(outcome) if "…" in one)


@dataclass(frozen=True)
class Left:
    """What a captured cluster left, and what was done to it since."""

    capture: str
    store: str
    done: str = ""


CRASHED = Left(CAPTURE, "file:bucket")
DAMAGED = {
    "crashed": CRASHED,
    "metadata lost in part": Left(
        *("kafka-4.3.1", "file:remote/kafka-tiered-storage"),
        "rm -r data/__remote_log_metadata-2; find remote -name '*.timeindex' -delete",
    ),
    "objects altered and lost": Left(
        *("kafka-4.3.1", "file:remote/kafka-tiered-storage"),
        "set -- $(find remote -name '*.log' | sort); printf XXXX | dd of=$1 bs=1 seek=100 conv=notrunc; rm $2; "
        "set -- $(find remote -name '*.index' | sort); rm $3",
    ),
}


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(left, id=name, marks=() if left is CRASHED else pytest.mark.exhaustive)
        for name, left in DAMAGED.items()
    ],
)
def test_what_is_printed_runs_in_a_shell_and_does_not_end_as_it_began(
    left: Left, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    shutil.copytree(captures / left.capture, tmp_path / "left")
    monkeypatch.chdir(tmp_path / "left")
    subprocess.run(["bash", "-c", left.done], capture_output=True, check=True)
    (tmp_path / "left/damaged").mkdir()
    (tmp_path / "left/damaged/00000000000000000107-0000000002.checkpoint").write_bytes(b"\0" * 100)
    metadata, store, kraft = ("--log-dir", "data"), ("--store", left.store), ("--kraft-snapshot", "data")
    roots = (
        *(("status", *metadata), ("status", *metadata, *store)),
        *(("verify", *metadata, *store), ("verify", "--level", "full", *metadata, *store, "-o", "wide")),
        *(("orphans", "scan", *metadata, *store), ("recover", "metadata", *metadata, *store)),
        *(("metadata", "stuck", *metadata, "-o", "wide"), ("metadata", "segments", *metadata)),
        *(("topic", "list", *kraft, *metadata), ("doctor", *kraft, *metadata), ("snapshot", "clean", "data")),
        *(
            ("snapshot", "inspect", "damaged"),
            ("store", "inspect", "damaged/00000000000000000107-0000000002.checkpoint"),
            ("wal", "verify", *store),
        ),
    )
    follower = Follower(tieredctl)

    for root in roots:
        follower.follow(root)

    assert follower.faults == []
    assert len(follower.seen) > len(roots)
    # A plan of too large a share is shown before it is applied.
    of_a_plan = {"orphans plan", "orphans show", "orphans apply"} if left is CRASHED else set[str]()
    assert of_a_plan <= {command for command, _ in follower.seen}


FILLED = {
    "topic": "orders7",
    "partition": 0,
    "metadataPartition": 0,
    "topicId": "Ex-aw3fEQIi3do0H9Y7cKQ",
    "segmentId": "Cq7X8SbzSeWvjxrQIzv1hQ",
    "file": "data/__cluster_metadata-0/00000000000000000107-0000000002.checkpoint",
    "offset": 5,
    "startOffset": 5,
    "release": "3.8",
    "key": "gone",
    "planId": "0" * 32,
}
"""What findings of the capture would be about."""
OF_OTHER_RUNS = tuple(
    f"tieredctl {one} "
    for one in ("wal", "diskless", "orphans restore", "snapshot clean", "snapshot ls", "remote multipart")
)
"""By runs that are given other places, paths or stores; and there is nothing to restore or to clean."""


def test_no_remedy_of_any_finding_lacks_a_word(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    shutil.copytree(captures / "kafka-4.3.1", tmp_path / "left")
    monkeypatch.chdir(tmp_path / "left")
    run = ("verify", "--log-dir", "data", "--store", "file:remote/kafka-tiered-storage")
    kinds = FINDING_KINDS.values()
    remedies = {one for kind in kinds for one in (kind.remedy, kind.remedy_of_index, kind.remedy_of_segment) if one}
    faults = []
    for remedy in sorted(one for one in remedies if one.startswith("tieredctl ")):
        command = Remedies(run).pasteable(pasteable(remedy, FILLED))
        if _BLANK.search(command) or "=FILE" in command or f"{command} ".startswith(OF_OTHER_RUNS):
            continue

        outcome = tieredctl(*words_in_a_shell(command))

        if outcome.exit_code in (ExitCode.FAILURE, ExitCode.USAGE):
            faults.append((command, outcome.err))
    assert faults == [], faults


def test_what_asks_a_cluster_leaves_its_place_to_the_reader() -> None:
    by_files, by_image = (
        Remedies(["doctor", "--log-dir", "data", *words]) for words in ((), ("--kraft-snapshot", "k"))
    )
    for verb in ("status", "enable", "disable"):
        remedy = f"tieredctl topic {verb} orders7 …"

        assert by_files.pasteable(remedy) == f"tieredctl topic {verb} orders7 --bootstrap-server HOST:PORT"
        assert "HOST:PORT" not in by_image.pasteable(remedy)
