"""The house around the code: what is installed is what is declared, and every package is held to its layer."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.rigs.spark_releases import RELEASES, lock_of

ROOT = Path(__file__).parents[2]
PROJECT_FILES = sorted(
    [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml"), *ROOT.glob("spark/pyproject.toml")]
)
LOCKS = sorted(ROOT.glob("requirements*.lock"))
OTHER_SPARKS = [lock_of(release) for release in RELEASES]


def project(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def own_names() -> set[str]:
    return {canonicalize_name(project(file)["project"]["name"]) for file in PROJECT_FILES}


def declared_requirements() -> list[Requirement]:
    root = project(ROOT / "pyproject.toml")
    declared = [requirement for group in root["dependency-groups"].values() for requirement in group]
    for file in PROJECT_FILES:
        tables = project(file)["project"]
        declared += tables.get("dependencies", [])
        declared += [requirement for extra in tables.get("optional-dependencies", {}).values() for requirement in extra]
    requirements = map(Requirement, declared)
    return [requirement for requirement in requirements if canonicalize_name(requirement.name) not in own_names()]


def locked_versions(lock: Path) -> dict[str, str]:
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def test_the_lock_holds_a_version_that_each_requirement_allows() -> None:
    versions = locked_versions(ROOT / "requirements.lock")
    for requirement in declared_requirements():
        locked = versions.get(canonicalize_name(requirement.name))

        assert locked is not None, f"{requirement}: run make lock"
        assert requirement.specifier.contains(locked), f"{requirement}: run make lock"


def test_the_smaller_locks_agree_with_the_whole_one_and_none_names_an_address() -> None:
    whole = locked_versions(ROOT / "requirements.lock").items()
    for lock in LOCKS:
        assert lock in OTHER_SPARKS or locked_versions(lock).items() <= whole, lock.name
        assert "://" not in lock.read_text(encoding="utf-8"), lock.name


def test_other_releases_of_spark_are_locked_by_themselves() -> None:
    for release, lock in zip(RELEASES, OTHER_SPARKS, strict=True):
        locked = locked_versions(lock)
        assert locked.keys() == {"pyspark", "py4j"}, lock.name
        assert locked["pyspark"].startswith(f"{release}."), lock.name
    assert f"OTHER_SPARKS := {' '.join(RELEASES)}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_package_is_held_to_the_import_contracts() -> None:
    packages = {init.parent.name for file in PROJECT_FILES for init in file.parent.glob("tieredctl*/__init__.py")}

    linted = set(project(ROOT / "pyproject.toml")["tool"]["importlinter"]["root_packages"])

    assert linted == packages
