"""Prometheus text for a node exporter's textfile collector: what a cron job leaves for the alerting to read."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tieredctl.errors import ExitCode
from tieredctl.model.findings import Finding
from tieredctl.ops.replaced_file import READABLE_BY_ALL, replaced_file

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def metrics_text(kind: str, summary: Mapping[str, Any], findings: Iterable[Finding], exit_code: ExitCode) -> str:
    """One gauge for each number of a summary, one for findings by code, exit code and time of the run."""
    label = f'{{command="{kind}"}}'
    lines = []
    for name, value in summary.items():
        if isinstance(value, int | float):
            metric = "tieredctl_" + _CAPITAL.sub("_", name).lower()
            lines += [
                f"# TYPE {metric} gauge",
                f"{metric}{label} {float(value):g}" if isinstance(value, float) else f"{metric}{label} {int(value)}",
            ]
    lines.append("# TYPE tieredctl_findings gauge")
    counts = Counter((finding.code, finding.severity.label) for finding in findings)
    for (code, severity), count in sorted(counts.items()):
        lines.append(f'tieredctl_findings{{command="{kind}",code="{code}",severity="{severity}"}} {count}')
    lines += ["# TYPE tieredctl_exit_code gauge", f"tieredctl_exit_code{label} {int(exit_code)}"]
    lines += ["# TYPE tieredctl_last_run_timestamp_seconds gauge"]
    lines.append(f"tieredctl_last_run_timestamp_seconds{label} {time.time():.0f}")
    return "\n".join(lines) + "\n"


def write_metrics(path: Path, text: str) -> None:
    """Replaces the file in one step: a collector never sees half of it. Raises TieredctlError."""
    with replaced_file(path, mode=READABLE_BY_ALL) as file:
        file.write(text.encode())
