"""Finds another root inside a store, which makes the store's root the wrong one to remove from.

Objects that a layout would explain if one of the store's folders were the root belong to another installation, or to
the same one seen from the wrong root; a quarantine inside holds what was removed from another root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.key_text import key_text
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import RESERVED_FOLDER


class FolderCheck:
    """Looks at the objects that no layout explains: in each folder, at one object for each suffix and length of name,
    since a layout's objects of one kind share both."""

    def __init__(self, subject: str, layouts: Sequence[Layout]) -> None:
        """`subject` is the store's URL, `layouts` all that are installed."""
        self._subject = subject
        self._layouts = layouts
        self._kinds_seen: set[tuple[str, str, int]] = set()
        self._refusal: TieredctlError | None = None
        if f"/{RESERVED_FOLDER}" in f"{subject.rstrip('/')}/":
            message = f"{subject} is inside the folder in which tieredctl keeps removed objects."
            hint = "`orphans restore` puts them back, and `orphans purge` deletes them for good."
            self._refusal = TieredctlError(ErrorCode.QUARANTINE_SCANNED, message, hint=hint)

    def look_at(self, objects: ObjectColumns) -> None:
        """Some of the store's objects."""
        inside = pc.match_substring(objects.keys, f"/{RESERVED_FOLDER}")
        if self._refusal is None and pc.any(inside).as_py():
            self._refuse_quarantine(key_text(objects.keys.filter(inside)[0].as_py()))
        for row in np.flatnonzero(~objects.is_explained).tolist():
            key = key_text(objects.keys[row].as_py())
            folder, _, name = key.rpartition("/")
            kind = folder, name.rpartition(".")[2], len(name)
            if kind not in self._kinds_seen:
                self._kinds_seen.add(kind)
                self._look_at_key(key)

    def demand_none(self) -> None:
        """Raises TieredctlError `ambiguous-prefix` or `quarantine-scanned` where there is another root."""
        if self._refusal is not None:
            raise self._refusal

    def _look_at_key(self, key: str) -> None:
        folder, slash, rest = key.partition("/")
        while slash and self._refusal is None:
            for layout in self._layouts:
                if layout.explain(rest) is not None:
                    message = f"{self._subject} contains another store's root, {folder}/, of layout {layout.name}."
                    hint = f"Give that folder as --store, or move it out of this one: {key} is there."
                    self._refusal = TieredctlError(ErrorCode.AMBIGUOUS_PREFIX, message, hint=hint)
            head, slash, rest = rest.partition("/")
            folder += f"/{head}"

    def _refuse_quarantine(self, key: str) -> None:
        folder = key.partition(f"/{RESERVED_FOLDER}")[0]
        message = f"{self._subject} contains the quarantine of another root, {folder}/."
        hint = f"Plan for {self._subject.rstrip('/')}/{folder} instead: {key} is there."
        self._refusal = TieredctlError(ErrorCode.QUARANTINE_SCANNED, message, hint=hint)
