"""What is not installed, and the command that adds it to this installation."""

from __future__ import annotations

import sys
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError


def missing_extra(message: str, extra: str) -> TieredctlError:
    """The error for a package that is not installed and that one of tieredctl's extras brings."""
    hint = f"Install it with {installation_of(extra)}."
    return TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint)


def installation_of(extra: str) -> str:
    """The command that adds an extra to this installation: uv's and pipx's have no pip of their own on the path."""
    requirement = f"'tieredctl[{extra}]'"
    if _is_uv_tool():
        return f"uv tool install {requirement}, and the same --with as before"
    return f"{_pip_install()} {requirement}"


def missing_package(what: str, package: str) -> TieredctlError:
    """The error for something that is in another package of tieredctl's, which is not installed."""
    hint = f"Install it with {_pip_install()} {package}."
    if _is_uv_tool():
        hint = f"Install it with uv tool install tieredctl --with {package}, and the same --with as before."
    return TieredctlError(ErrorCode.USAGE, f"{what} is in {package}, which is not installed.", hint=hint)


def _is_uv_tool() -> bool:
    return Path(sys.prefix, "uv-receipt.toml").exists()


def _pip_install() -> str:
    is_pipx = Path(sys.prefix, "pipx_metadata.json").exists()
    return "pipx runpip tieredctl install" if is_pipx else "pip install"
