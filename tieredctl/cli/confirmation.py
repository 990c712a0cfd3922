"""Confirmation by the cluster's name, without which nothing is changed: typed by a person, or written in a script."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from tieredctl.cli.bar import make_room
from tieredctl.cli.context_in_use import context_in_use
from tieredctl.cli.line_breaks import broken
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.terminal import width_of
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.model.printable import printable


def known_cluster(of_metadata: str | None, typed_cluster_id: str | None) -> str:
    """The cluster that is changed: by its metadata, or where that does not say so, by --cluster-id.

    Raises TieredctlError `not-confirmed` where neither does.
    """
    known = of_metadata or typed_cluster_id
    if known is None:
        message = "It is unknown which cluster this is."
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, message, hint="Give --cluster-id.")
    return known


def demand_confirmation(what: str, cluster_id: str | None, *, yes: bool, typed_cluster_id: str | None) -> None:
    """Returns where `what` is confirmed: by --yes and the right --cluster-id, or by typing the id at a terminal.

    Raises TieredctlError `another-cluster` for another id, `not-confirmed` if the answer is no, if there is no
    terminal to ask at, and where it is unknown which cluster this is.
    """
    used = context_in_use.get()
    if used is not None and (places := used.places()):
        what = f"{what}, with {places}"
    if cluster_id is None:
        hint = "A change is confirmed by the cluster's id, and this cluster does not report its id."
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, f"{what} cannot be confirmed.", hint=hint)
    demand_same_cluster(cluster_id, typed_cluster_id)
    if yes and typed_cluster_id is not None:
        return
    if yes or not can_ask():
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, f"{what} needs confirmation.")
    demand_typed(cluster_id, f"{what}: type the cluster's id, {cluster_id}, to continue")


def can_ask() -> bool:
    """Whether a person sits at this terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def demand_typed(name: str, question: str) -> None:
    """Asks a person to type a name. Raises TieredctlError `not-confirmed` for anything else."""
    make_room()
    asked = "\n".join(broken(f"{printable(question)}:", width_of(sys.stderr)))
    print(f"{asked} ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # Ctrl-D leaves the cursor after the question
        print(file=sys.stderr)
    if answer.strip() != name:
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, "Not confirmed; nothing was changed.", hint="")


@dataclass(frozen=True, slots=True)
class ApplyChoice(OptionGroup):
    """--apply, and what takes it back."""

    apply: Annotated[bool, typer.Option("--apply", help="Make the change; without it, only show the plan.")] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan, even with --apply; as without both.")
    ] = False

    @property
    def is_made(self) -> bool:
        """Whether the change is to be made."""
        return self.apply and not self.dry_run

    def advice(self, *, changes: bool) -> tuple[str, ...]:
        """What follows a plan that is only shown, where it would change something."""
        return ("Nothing was changed: --apply makes the change.",) if changes and not self.apply else ()
