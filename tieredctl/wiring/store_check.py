"""`store check`: reads local stores, then the metadata that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.store_check.check import StoreCheck, check_stores
from tieredctl.ops.store_check.local_stores import read_local_stores
from tieredctl.wiring.places import MetadataPlace, StorePlace


class CheckedStores(NamedTuple):
    """What a check of local stores found, and where."""

    result: StoreCheck
    source: Document
    metadata_findings: Sequence[Finding]
    """What was wrong with the metadata."""


def check_local_stores(
    directories: Sequence[Path], metadata: MetadataPlace, store: StorePlace | None = None
) -> CheckedStores:
    """Whether the local stores in brokers' log directories agree with each other and with the metadata, which is read
    from the same directories unless another place is given.

    Local stores are read first: what a running broker wrote there is already in the metadata. With `store`, cached
    indexes are compared with the remote ones. Raises TieredctlError as the places do.
    """
    stores = read_local_stores(directories)
    open_segment, described = None, {}
    if store is not None:
        opened, layout = store.open()
        open_segment = partial(layout.open_segment, opened)
        described = {"store": opened.url, "layout": layout.name}
    place = metadata if metadata.is_given else MetadataPlace(tuple(directories))
    with place.open() as stream:
        result = check_stores(stores, stream, open_segment)
        source = stream.source.describe() | {"stores": [str(path) for path in directories]} | described
        return CheckedStores(result, source, stream.findings)
