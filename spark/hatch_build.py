"""Adds the manual pages of this package's commands to its wheel, for `man tieredctl-…`."""

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
        # In the project's folder by tieredctl beside this package; elsewhere by the one that is installed.
        sys.path.insert(0, str(Path(self.root).parent))
        try:
            from tieredctl.cli.completion.command_table import CommandTable
            from tieredctl.cli.man_pages import written_man_pages
        finally:
            del sys.path[0]
        self._folder = TemporaryDirectory(prefix="tieredctl-man-")
        table = Path(self.root, self.metadata.name.replace("-", "_"), "command_table.tsv").read_text(encoding="utf-8")
        build_data["shared_data"] |= written_man_pages(CommandTable(table), Path(self._folder.name))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is there."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
