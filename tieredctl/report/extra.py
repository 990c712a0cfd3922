"""Whether pages can be made here."""

from __future__ import annotations

from importlib.util import find_spec

from tieredctl.errors import missing_extra


def demand_installed() -> None:
    """Raises TieredctlError `missing-extra` where the libraries of pages are not installed; imports neither."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise missing_extra(f"A report needs {' and '.join(missing)}.", "report")
