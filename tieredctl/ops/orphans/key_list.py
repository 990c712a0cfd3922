"""A file with a store's keys, told from any other text file."""

from __future__ import annotations

import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import KeyFile
from tieredctl.ports.layout import Layout


def demand_any_key(listed: KeyFile, layout: Layout) -> None:
    """Raises TieredctlError `usage` where no line is a key of the layout, or of one of tieredctl's own objects: every
    line of another kind of file would be an unknown object."""
    explainer = KeyExplainer(layout)
    for batch in listed.batches():
        keys = batch.column("key")
        columns = explainer.explain(keys)
        if any(stem is not None for stem in columns.explained) or pc.any(are_reserved(keys)).as_py():
            return
    message = f"No line of {listed.path} is a key of the layout {layout.name}."
    raise TieredctlError(ErrorCode.USAGE, message, hint="Give the store's keys, one per line, as --store has them.")
