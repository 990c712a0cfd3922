"""The installed layouts: entry points of the group `tieredctl.layouts`, each loaded when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.diskless_objects import is_object_name
from tieredctl.model.pasteable import quoted
from tieredctl.model.platforms import platform_by_keys
from tieredctl.plugins import PluginKind
from tieredctl.ports.layout import AUTO, Layout
from tieredctl.ports.object_store import ObjectStore, list_unreserved

LAYOUTS = PluginKind("layout", "tieredctl.layouts", unknown=ErrorCode.UNKNOWN_LAYOUT)
DISKLESS = "inkless"
"""Asked for like a layout, and none: an object of diskless topics belongs to no segment."""
_ASK_DISKLESS = "Objects of diskless topics are looked at with `tieredctl diskless`."
DETECTION_KEYS = 1_000
"""How many keys `detect` looks at: what one request lists in S3."""
_DEEPEST = 4
"""How many folders below a store it is looked for."""
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def installed_layouts() -> list[str]:
    """The names that `layout_named` knows."""
    return LAYOUTS.names()


def layouts_installed() -> list[Layout]:
    """All installed layouts that need no option."""
    return _layouts_taking(_NO_OPTIONS)


def layout_named(name: str, options: Mapping[str, str] = _NO_OPTIONS) -> Layout:
    """The layout of that name, with its options.

    Raises TieredctlError: `unknown-layout`, `missing-extra` where its plugin lacks something that it imports, `usage`
    for an option that it does not take.
    """
    if name == DISKLESS and name not in installed_layouts():
        message = "Diskless topics have no layout: their objects mix partitions, and belong to no segment."
        raise TieredctlError(ErrorCode.UNKNOWN_LAYOUT, message, hint=_ASK_DISKLESS)
    layout: Layout = LAYOUTS.make(name, options)
    return layout


def layout_in(store: ObjectStore, name: str, options: Mapping[str, str] = _NO_OPTIONS) -> Layout:
    """The layout of that name, or the one that `detect` finds for `AUTO`, settled in the store.

    Raises TieredctlError as `layout_named`, `detect` and `Layout.settled_in` do.
    """
    return layout_named(detect(store, options) if name == AUTO else name, options).settled_in(store)


def detect(store: ObjectStore, options: Mapping[str, str] = _NO_OPTIONS) -> str:
    """The one installed layout that takes these options and explains some of the store's first keys.

    Raises TieredctlError: `usage` where no layout takes the options, `unknown-layout` where none explains a key or
    several do, `metadata-not-here` where the keys are another platform's, `missing-extra` as `layout_named` does.
    """
    layouts = [layout.settled_in(store) for layout in _layouts_taking(options)]
    keys = _first_keys(store)
    fitting = [layout.name for layout in layouts if any(layout.explain(key) or layout.other_form(key) for key in keys)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and (found := platform_by_keys(keys)) is not None:
        platform, key = found
        message = f"{store.url} is of {platform.name}, which keeps {platform.metadata}: {key} is a key of its own."
        raise TieredctlError(ErrorCode.METADATA_NOT_HERE, message)
    are_diskless = bool(keys) and not fitting and all(is_object_name(key.rpartition("/")[2]) for key in keys)
    hint = _ASK_DISKLESS if are_diskless else _advice(store, keys, [] if fitting else layouts)
    raise TieredctlError(ErrorCode.UNKNOWN_LAYOUT, _why_undecided(store, keys, fitting), hint=hint)


def _advice(store: ObjectStore, keys: Sequence[str], layouts: Sequence[Layout]) -> str:
    """What to try: often the store that was meant lies some folders deeper."""
    if not keys:
        return "Check that this is the right place; for an empty store, name the layout with --layout."
    for key in keys:
        folders = key.split("/")
        for depth in range(1, min(len(folders), _DEEPEST + 1)):
            rest = "/".join(folders[depth:])
            if any(layout.explain(rest) or layout.other_form(rest) for layout in layouts):
                url = f"{store.url.rstrip('/')}/{'/'.join(folders[:depth])}"
                return f"Did you mean --store {quoted(url)}? Otherwise, name the layout with --layout."
    return "Name the layout with --layout."


def _first_keys(store: ObjectStore) -> list[str]:
    """Enough keys to decide."""
    keys: list[str] = []
    try:
        keys.extend(stored.key for stored in islice(list_unreserved(store), DETECTION_KEYS))
    except TieredctlError:
        if not keys:
            raise
    return keys


def _layouts_taking(options: Mapping[str, str]) -> list[Layout]:
    layouts: list[Layout] = []
    for name in installed_layouts():
        try:
            layouts.append(layout_named(name, options))
        except TieredctlError as error:
            if error.code is not ErrorCode.USAGE:
                raise
    if options and not layouts:
        raise TieredctlError(
            ErrorCode.USAGE, f"No layout takes the options {', '.join(options)}; {LAYOUTS.installed()}."
        )
    return layouts


def _why_undecided(store: ObjectStore, keys: list[str], fitting: list[str]) -> str:
    if not keys:
        return f"{store.url} holds no object that shows its layout."
    if fitting:
        return f"The first keys of {store.url} fit several layouts: {', '.join(fitting)}."
    return f"No layout explains the first keys of {store.url}, such as {keys[0]}; {LAYOUTS.installed()}."
