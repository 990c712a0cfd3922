"""Where the contexts of the configuration are, for commands that take all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieredctl.cli import named_context
from tieredctl.cli.context_in_use import context_in_use
from tieredctl.cli.places import ClusterOptions, RemoteOptions
from tieredctl.config.contexts import Context, contexts
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import MetadataPlace
from tieredctl.wiring.status import StatusPlaces, load_libraries


def all_contexts(results: Sequence[Path]) -> list[Context]:
    """Every context; what opens their clusters and stores is imported, which threads cannot.

    Raises TieredctlError where there is none, or another place or result was named besides."""
    used = context_in_use.get()
    typed = [origin for origin in ({} if used is None else used.origins).values() if origin.startswith("--")]
    if results or typed or named_context.get() is not None:
        message = "--all-contexts takes no other places."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Omit it, or what names a cluster, a store or a result.")
    chosen = list(contexts().by_name.values())
    if not chosen:
        hint = "Add one with `tieredctl context add`."
        raise TieredctlError(ErrorCode.USAGE, "There are no contexts.", hint=hint)
    load_libraries(context.store for context in chosen if context.store is not None)
    return chosen


def places_of(context: Context) -> StatusPlaces:
    """Its cluster and its store. Raises TieredctlError where one of its values cannot be used."""
    config = context.command_config
    cluster = ClusterOptions(context.bootstrap_server, None if config is None else Path(config).expanduser())
    remote = RemoteOptions(
        context.store,
        [f"{name}={value}" for name, value in context.store_options.items()],
        context.layout or "auto",
        [f"{name}={value}" for name, value in context.layout_options.items()],
    )
    metadata = None if context.bootstrap_server is None else MetadataPlace(cluster=cluster.place())
    return StatusPlaces(metadata, remote.place_if_given())
