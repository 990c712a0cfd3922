"""Wheels of what is installed here, so that an installer can be tried without a network."""

from __future__ import annotations

import re
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==[^ ;]+(?: ; (.*?))? \\$", re.MULTILINE)
_WRITTEN_BY_INSTALLERS = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def locked_names(lock: Path) -> list[str]:
    """The packages of a lock that are for this machine."""
    from packaging.markers import Marker

    found = _LOCKED.findall(lock.read_text(encoding="utf-8"))
    return [name for name, marker in found if not marker or Marker(marker).evaluate()]


def repacked(name: str, folder: Path) -> Path:
    """A wheel with the files that the package has here."""
    installed = distribution(name)
    path = folder / f"{name.replace('-', '_')}-{installed.version}-{_tag(installed)}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        info = ""
        for file in installed.files or ():
            if file.parts[0] == ".." or file.suffix == ".pyc":
                continue
            if file.parts[0].endswith(".dist-info"):
                info = file.parts[0]
                if file.name in _WRITTEN_BY_INSTALLERS:
                    continue
            wheel.write(str(file.locate()), str(file))
        wheel.writestr(f"{info}/RECORD", "".join(f"{one},,\n" for one in [*wheel.namelist(), f"{info}/RECORD"]))
    return path


def _tag(installed: Distribution) -> str:
    tags = re.findall(r"^Tag: (.*)$", installed.read_text("WHEEL") or "", flags=re.MULTILINE)
    return ".".join(tags) if len(tags) == 1 else _compressed(tags)


def _compressed(tags: list[str]) -> str:
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)
