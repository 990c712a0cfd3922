"""The first bytes by which tieredctl knows a file again that it replaces without being asked."""

METRICS = b"# HELP tieredctl_"
"""How the metrics that any run leaves begin."""
