"""A command that is killed at moments spread over its whole work, and run again each time: it ends as one run would,
and what it only reads stays as it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from tests.cli.command_line import this_process
from tests.rigs.stopped_process import KILL, Moment, let_the_lease_run_out, run_to_its_end, run_until
from tests.shares import divided
from tieredctl.ports.object_store import RESERVED_FOLDER

KILLED = int(os.environ.get("TIEREDCTL_KILLED", "10"))
"""How many runs of a command are killed, by all shares together; `make soak` kills more."""


def checksums(*folders: Path) -> dict[str, str]:
    """Of all that is in folders, but for tieredctl's own."""
    files = [path for folder in folders for path in folder.rglob("*") if RESERVED_FOLDER.rstrip("/") not in path.parts]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def killed_runs(
    words: Sequence[str | Path],
    folder: Path,
    begin: Callable[[], object],
    end: Callable[[], object],
    sources: Sequence[Path],
    calls: Sequence[str] = (),
) -> Iterator[str]:
    """The moments at which a command is killed: right before the first, a middle and the last change that it makes
    below `folder`, and before others between these, evenly, of which a run of the tests does its share; `calls` count
    as changes, too. Each is yielded when the run is dead, for what has to hold even then.

    `begin` makes everything as a run finds it, and `end` tells what a run leaves. Raises AssertionError where the next
    run ends in another way than one that nobody kills, or a file below `sources` is another.
    """
    before = checksums(*sources)
    begin()
    whole, changes = run_to_its_end(folder, words, calls)
    expected = end()
    assert checksums(*sources) == before
    for number in _spread(len(changes)):
        begin()
        moment = f"{number} of {len(changes)}: {changes[number - 1]}"
        killed = run_until(Moment("", number), KILL, folder, words, calls)
        assert killed.exit_code == -KILL, (moment, killed)
        let_the_lease_run_out(folder, KILL)
        yield moment
        again = this_process(*words)
        assert (again.exit_code, end()) == (whole.exit_code, expected), (moment, again.err)
        assert checksums(*sources) == before, moment


def _spread(changes: int) -> Iterator[int]:
    """As many of the numbers from 1 on as runs are killed, all shares together."""
    always = {0, KILLED // 2, KILLED - 1}
    places = always.union(divided([place for place in range(KILLED) if place not in always]))
    return (1 + place * (changes - 1) // max(1, KILLED - 1) for place in sorted(places))
