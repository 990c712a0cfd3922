"""The rights that tieredctl's own commands need on a cluster: docs/security.md shows the same table."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.model.command_packages import Rights

_DESCRIBE, _READ = ("Describe",), ("Describe", "Read")
_DESCRIBE_CONFIGS = ("Describe", "DescribeConfigs")

OWN_RIGHTS: Mapping[Rights, tuple[str, ...]] = {
    Rights(_READ): (
        "metadata format",
        "metadata segments",
        "metadata history",
        "metadata lookup",
        "metadata epochs",
        "metadata stuck",
        "metadata partition-of",
        "metadata stats",
        "metadata export",
        "store check",
        "store compare",
        "store copy",
        "remote read",
        "verify",
        "orphans scan",
        "orphans plan",
        "orphans apply",
        "orphans purge",
        "partition remove",
        "estimate cost",
    ),
    Rights((), _DESCRIBE): ("offsets",),
    Rights(_READ, _DESCRIBE): ("estimate metadata", "remote records"),
    Rights(_READ, _DESCRIBE_CONFIGS): ("explain", "recover metadata", "recover indexes", "heal", "pipeline run"),
    Rights(_READ, _DESCRIBE_CONFIGS, _DESCRIBE): (
        "topic list",
        "topic status",
        "estimate retention",
        "estimate follower-bootstrap",
    ),
    Rights(_READ, _DESCRIBE_CONFIGS, _DESCRIBE_CONFIGS, _DESCRIBE): (
        "doctor",
        "status",
        "exporter",
        "support-bundle",
    ),
    Rights(_READ, ("Describe", "AlterConfigs"), _DESCRIBE_CONFIGS): ("topic enable", "topic disable"),
    Rights(_DESCRIBE, _DESCRIBE_CONFIGS, _DESCRIBE_CONFIGS): ("doctor config",),
    Rights((), _DESCRIBE_CONFIGS, ("DescribeConfigs",)): ("doctor store",),
}
"""The commands by what they need. `doctor connect` needs nothing: it says what the user has."""
RIGHTS_BESIDES: Mapping[Rights, tuple[str, ...]] = {
    Rights(("Describe", "Read", "Write")): ("partition remove --apply", "recover metadata --apply"),
    Rights((), (), ("Describe", "ClusterAction")): ("snapshot fetch",),
    Rights(_READ, (), ("ClusterAction",)): ("backup run",),
}
"""Those that need more than they need to look."""
