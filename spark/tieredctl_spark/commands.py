"""What this package adds to tieredctl's command line. Nothing that the commands need is loaded here."""

from __future__ import annotations

from tieredctl.model.command_packages import CommandPackage, Commands, Rights

SPARK = CommandPackage(
    "tieredctl_spark",
    (
        Commands(
            "pipeline",
            "tieredctl_spark.cli.commands.pipeline",
            "Keep segments, objects, costs and findings as tables, with Spark.",
        ),
    ),
    rights={("pipeline", "run"): Rights(("Describe", "Read"), topics=("Describe", "DescribeConfigs"))},
)
"""The entry point `spark` of the group `tieredctl.commands`."""
