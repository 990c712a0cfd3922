"""Commands come from other packages, too: each is loaded for its own alone, and tieredctl works without any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

RUN = """
import json, sys
from pathlib import Path
hidden, into, words = json.loads(sys.argv[1])
for name in hidden:
    sys.modules[name] = None  # an import of it fails
import tieredctl.plugins
installed = tieredctl.plugins._installed
tieredctl.plugins._installed = lambda group, path: [
    point for point in installed(group, path) if point.module.partition(".")[0] not in hidden
]
from tieredctl.cli.main import main
try:
    main(words)
finally:
    loaded = sorted({name.partition(".")[0] for name, module in sys.modules.items() if module})
    modules = [name for name in sys.modules if name.startswith("tieredctl_")]
    Path(into).write_text(json.dumps([loaded, modules]))
"""
SECONDS = 60
PROPOSALS, INKLESS = "tieredctl_proposals", "tieredctl_inkless"
ACME = """
import typer
from tieredctl.model.command_packages import CommandPackage, Commands

def hello() -> None:
    '''Greet. For example: tieredctl acme hello'''
    print("hello")

def add_to(commands: typer.Typer) -> None:
    commands.command("hello")(hello)
    commands.command("wave")(hello)

PACKAGE = CommandPackage(
    "acme_commands",
    (Commands("acme", "acme_commands", "Greet people."), Commands("estimate", "acme_commands", verbs=("wave",))),
)
"""


class Ran:
    """What a command line did in a process of its own."""

    def __init__(self, folder: Path, words: Sequence[str], hidden: Sequence[str] = (), **variables: str) -> None:
        into = folder / "loaded.json"
        given = json.dumps([hidden, str(into), words])
        done = subprocess.run(
            [sys.executable, "-c", RUN, given],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.loaded, self.modules = json.loads(into.read_text(encoding="utf-8"))


def test_only_the_package_of_a_command_is_loaded(tmp_path: Path) -> None:
    for words, packages in {
        "--version": set(),
        "metadata lookup --help": set(),
        "estimate cost --help": set(),
        "wal inspect --help": {PROPOSALS},
        "diskless status --help": {INKLESS},
    }.items():
        ran = Ran(tmp_path, words.split())

        loaded = {name.partition(".")[0] for name in ran.modules if name.partition(".")[2] not in ("", "commands")}
        assert (ran.code, loaded) == (0, packages), words


def test_a_command_whose_package_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    for words, hidden, named in (
        ("wal inspect --store file:a", [PROPOSALS], "tieredctl-proposals"),
        ("wal", [PROPOSALS], "tieredctl-proposals"),
        ("estimate wal-cost", [PROPOSALS], "tieredctl-proposals"),
        ("diskless format", [PROPOSALS], "tieredctl-proposals"),
        ("diskless format", [PROPOSALS, INKLESS], "tieredctl-proposals"),
        ("diskless status", [PROPOSALS, INKLESS], "tieredctl-inkless"),
        ("diskless orphans scan --log-dir . --store file:a", [PROPOSALS], "tieredctl-proposals"),
    ):
        ran = Ran(tmp_path, words.split(), hidden)

        assert (ran.code, ran.out, f"pip install {named}." in ran.err) == (2, "", True), (words, hidden, ran.err)


def test_without_packages_everything_else_is_as_it_was(tmp_path: Path) -> None:
    hidden = [PROPOSALS, INKLESS]

    shown = Ran(tmp_path, ["--help"], hidden)
    code = Ran(tmp_path, ["explain-code", "wal-offset-gap"], hidden)
    own_code = Ran(tmp_path, ["explain-code", "offset-gap"], hidden)

    nouns = {line.split()[0] for line in shown.out.splitlines() if line.startswith("  ")}
    assert (shown.code, nouns & {"wal", "diskless", "doctor"}) == (0, {"doctor"})
    assert (code.code, own_code.code) == (2, 0)


def test_anybodys_package_brings_nouns_verbs_and_what_completes_them(tmp_path: Path) -> None:
    package, described = tmp_path / "acme_commands", tmp_path / "acme-1.dist-info"
    package.mkdir()
    described.mkdir()
    (package / "__init__.py").write_text(ACME)
    (package / "command_table.tsv").write_text("acme\tcommand\tGreet people.\nacme hello\tcommand\tGreet.\n")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (described / "entry_points.txt").write_text("[tieredctl.commands]\nacme = acme_commands:PACKAGE\n")
    path = {"PYTHONPATH": str(tmp_path)}

    helped, greeted = Ran(tmp_path, ["--help"], **path), Ran(tmp_path, ["acme", "hello"], **path)
    added = Ran(tmp_path, ["estimate", "wave"], **path)
    completed = Ran(tmp_path, ["acme", "h"], _TIEREDCTL_COMPLETE="zsh", **path)

    assert "  acme            Greet people." in helped.out
    assert (greeted.code, greeted.out, added.code, added.out) == (0, "hello\n", 0, "hello\n")
    assert completed.out.splitlines()[1] == "hello\tGreet"
