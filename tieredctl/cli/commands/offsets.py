"""`tieredctl offsets`: where the logs of a topic begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tieredctl.cli.outcome import say
from tieredctl.cli.output import Item
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import View
from tieredctl.errors import ExitCode
from tieredctl.model.result_row import camel_case
from tieredctl.ops.cluster.offsets import OFFSETS, UNSUPPORTED, PartitionOffsets, topic_offsets


def _offset(name: str) -> Callable[[Item], object]:
    """A dash is for what there is none of, not for what its leader could not tell."""

    def shown(item: Item) -> object:
        error = item.get("errors", {}).get(name)
        return item.get(name) if error is None else "unsupported" if error == UNSUPPORTED else "unknown"

    return shown


_TEXTS = {name: _offset(camel_case(name)) for name in OFFSETS}


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `offsets` known."""
    del meaning  # its own text says more
    app.command(noun)(offsets)


def offsets(
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    cluster_options: ClusterOptions,
    view: View,
) -> ExitCode:
    """Show where a topic's logs begin and end, locally and in remote storage. As each partition's leader reports it.

    A dash means there is no such offset; offsets that a release cannot report are named. Exit 5 if a leader did not
    answer.

    For example: tieredctl offsets orders --bootstrap-server broker:9092
    """
    with cluster_options.place().open() as cluster:
        of_topic = topic_offsets(cluster, topic)
    rows = of_topic.rows()
    listing = result_listing("Offsets", cluster.describe(), PartitionOffsets, rows, of_topic.summary(), **_TEXTS)
    errors = sorted({(name, error) for row in rows for name, error in row.errors.items()})
    if not view.quiet:
        for name, error in errors:
            say(f"{name} is unknown: {error}")
    code = ExitCode.INCOMPLETE if any(row.unanswered for row in rows) else ExitCode.CLEAN
    return view.show(listing, code=code)
