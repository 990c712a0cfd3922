"""Adds the manual pages to the wheel, for `man tieredctl`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface[Any]):
    """Writes them while the wheel is built; what is installed for development has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from tieredctl.cli.completion.command_table import CommandTable
            from tieredctl.cli.man_pages import written_man_pages
        finally:
            sys.path.remove(self.root)
        self._folder = TemporaryDirectory(prefix="tieredctl-man-")
        build_data["shared_data"] |= written_man_pages(CommandTable.installed(), Path(self._folder.name))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is there."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
