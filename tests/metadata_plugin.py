"""A package that is installed, and brings a source of metadata: what another remote log metadata manager has kept."""

from __future__ import annotations

from pathlib import Path

NAME = "acme"
"""Of the source."""
EXPORT_OPTION = "export"

_MODULE = '''
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.export_file import ExportFile


class AcmeDatabase(ExportFile):
    """An export in the folder that is the location."""

    def describe(self):
        return {**super().describe(), "kind": "acme"}


def open_database(location, options):
    unknown = set(options) - {"export"}
    if unknown:
        raise TieredctlError(ErrorCode.USAGE, f"Acme's database has no option {min(unknown)!r}.")
    return AcmeDatabase(Path(location, options.get("export", "export.jsonl")))
'''
_ENTRY_POINTS = """[tieredctl.metadata_sources]
acme = acme_metadata:open_database
gone = acme_metadata:no_such_name
lacking = acme_metadata_lacking:open_database
"""


def install_metadata_plugin(folder: Path) -> Path:
    """Lays it out as an installer does: the folder, to be put on Python's path."""
    distribution = folder / "acme_metadata-1.0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-metadata\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(_ENTRY_POINTS)
    (folder / "acme_metadata.py").write_text(_MODULE)
    (folder / "acme_metadata_lacking.py").write_text("import no_such_client_library\n")
    return folder
