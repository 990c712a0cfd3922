"""CRC-32C (Castagnoli), which seals record batches and producer snapshots.

The function is the library `crc32c`'s. Its package imports `importlib.metadata` to learn its own version, which takes a
tenth of a short command's time; so its extension module is loaded without the package.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c
else:
    _package = PathFinder.find_spec("crc32c")
    _extension = PathFinder.find_spec("crc32c._crc32c", _package.submodule_search_locations)
    _module = module_from_spec(_extension)
    _extension.loader.exec_module(_module)
    crc32c = _module.crc32c

__all__ = ["crc32c"]
