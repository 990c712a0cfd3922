"""A change is confirmed by the cluster's id, typed at a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.context_in_use import ContextInUse, Role, context_in_use
from tieredctl.errors import TieredctlError

CLUSTER_ID = "rTFWgbQKRvehFNx-PhMpIg"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ask(monkeypatch: pytest.MonkeyPatch, typed: str, what: str = "Removing 7 objects") -> str:
    """What is asked of a person who then types this."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", screen)
    demand_confirmation(what, CLUSTER_ID, yes=False, typed_cluster_id=None)
    return screen.getvalue()


def test_the_id_confirms(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(monkeypatch, CLUSTER_ID + "\n")

    assert asked == f"Removing 7 objects: type the cluster's id, {CLUSTER_ID}, to continue: "


def test_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for typed in ("", "\n", "y\n", "yes\n", CLUSTER_ID[:-1] + "\n", CLUSTER_ID.lower() + "\n"):
        with pytest.raises(TieredctlError) as refused:
            ask(monkeypatch, typed)

        assert refused.value.code == "not-confirmed", typed


def test_places_that_nobody_typed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    used = ContextInUse(origins={Role.STORE: "context prod"}, values={Role.STORE: "s3://prod"})
    token = context_in_use.set(used)
    try:
        asked = ask(monkeypatch, CLUSTER_ID + "\n")
    finally:
        context_in_use.reset(token)

    assert asked.startswith("Removing 7 objects, with store s3://prod (context prod): type")


def test_a_name_cannot_colour_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in ask(monkeypatch, CLUSTER_ID + "\n", "from file:/\x1b[31mred")


def test_at_a_terminal_too_yes_needs_the_id_of_this_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(CLUSTER_ID + "\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())

    for typed, code in ((None, "not-confirmed"), ("ABEiM0RVZneImaq7zN3u_w", "another-cluster")):
        with pytest.raises(TieredctlError) as refused:
            demand_confirmation("Removing 7 objects", CLUSTER_ID, yes=True, typed_cluster_id=typed)
        assert refused.value.code == code
    demand_confirmation("Removing 7 objects", CLUSTER_ID, yes=True, typed_cluster_id=CLUSTER_ID)
