"""Whether pages can be made here."""

from __future__ import annotations

from importlib.util import find_spec

from tieredctl.installation import missing_extra


def demand_installed() -> None:
    """Raises TieredctlError `missing-extra` where the library of pages is not installed; does not import it."""
    if find_spec("jinja2") is None:
        raise missing_extra("A report needs jinja2.", "report")
