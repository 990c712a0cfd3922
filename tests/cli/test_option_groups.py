"""A group of options is taken, and shown, as its options would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from tieredctl.cli.option_groups import OptionGroup, flattened

Url = Annotated[str | None, typer.Option("--store", metavar="URL", help="Where.")]


@dataclass(frozen=True)
class Where(OptionGroup):
    """A place."""

    store: Url = None
    depth: int = 3


def grouped(*, name: str, where: Where, loud: bool = False) -> None:
    """What it does."""
    typer.echo((name, where, loud))


def ungrouped(*, name: str, store: Url = None, depth: int = 3, loud: bool = False) -> None:
    """What it does."""
    typer.echo((name, Where(store, depth), loud))


def application(command: object) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("it")(flattened(command))  # type: ignore[arg-type]
    return app


def test_a_group_behaves_as_its_options_do() -> None:
    runner = CliRunner()
    for words in (
        ("--help",),
        ("--name", "n"),
        ("--name", "n", "--store", "file:x", "--depth", "7", "--loud"),
        ("--name", "n", "--depth", "seven"),
        ("--store", "file:x"),
    ):
        with_group, without = (runner.invoke(application(one), words) for one in (grouped, ungrouped))

        assert (with_group.output, with_group.exit_code) == (without.output, without.exit_code), words


def test_a_command_without_groups_stays_as_it_is() -> None:
    assert flattened(ungrouped) is ungrouped
