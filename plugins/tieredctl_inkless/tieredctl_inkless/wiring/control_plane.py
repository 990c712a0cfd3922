"""Where a control plane of diskless topics is, as a value; and how to open it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieredctl_inkless.diskless.control_plane import ControlPlane


@dataclass(frozen=True, slots=True)
class ControlPlanePlace:
    """Inkless's database."""

    conninfo: str
    """A libpq URI, or its settings such as service=NAME, without a password."""

    def open(self) -> ControlPlane:
        """The control plane, to be read; it is connected to when it is asked.

        Raises TieredctlError `usage` for text that libpq does not understand or that holds a password, and
        `missing-extra`.
        """
        from tieredctl_inkless.control_plane.connection import demand_no_secret
        from tieredctl_inkless.control_plane.postgres import PostgresControlPlane

        demand_no_secret(self.conninfo)
        return PostgresControlPlane(self.conninfo)
