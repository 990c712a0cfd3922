"""Nothing is changed that a person, or whoever wrote the script, did not confirm by the cluster's name."""

from __future__ import annotations

import sys

from tieredctl.cli.output import printable
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.change import demand_same_cluster


def demand_confirmation(what: str, cluster_id: str | None, *, yes: bool, typed_cluster_id: str | None) -> None:
    """Returns where `what` is confirmed: by --yes and the right --cluster-id, or by typing the id at a terminal.

    Raises TieredctlError `another-cluster` for another id, `not-confirmed` where nobody can be asked, or says no, and
    where nothing tells which cluster it is.
    """
    if cluster_id is None:
        hint = "Whoever confirms a change names the cluster, and this one does not tell its id."
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, f"{what} cannot be confirmed.", hint=hint)
    demand_same_cluster(cluster_id, typed_cluster_id)
    if yes and typed_cluster_id is not None:
        return
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, f"{what} has to be confirmed.")
    question = printable(f"{what}: type the cluster's id, {cluster_id}, to go on")
    print(f"{question}: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != cluster_id:
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, "It was not confirmed; nothing was changed.", hint="")
