"""Tagged fields that a schema does not know, by the path of the struct that carries them."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.formats.schema import UNKNOWN_TAGS
from tieredctl.formats.wire import Values
from tieredctl.model.events import TaggedField


def tagged_fields(values: Values) -> list[TaggedField]:
    """Those of a decoded struct and of the structs in it."""
    return _named(values, "") if _carries_any(values) else []


def _carries_any(values: Values) -> bool:
    """Nearly always none: no path is made for nothing."""
    if UNKNOWN_TAGS in values:
        return True
    for value in values.values():
        if type(value) is dict:
            if _carries_any(value):
                return True
        elif type(value) is list and value and type(value[0]) is dict and any(map(_carries_any, value)):
            return True
    return False


def _named(values: Values, path: str) -> list[TaggedField]:
    found = [TaggedField(path, tag, data) for tag, data in values.get(UNKNOWN_TAGS, ())]
    for name, value in values.items():
        inner = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            found += _named(value, inner)
        elif isinstance(value, list) and name != UNKNOWN_TAGS:
            for index, element in enumerate(value):
                if isinstance(element, dict):
                    found += _named(element, f"{inner}[{index}]")
    return found


def put_tagged_fields(values: Values, fields: Iterable[TaggedField]) -> None:
    """Puts them back where they were."""
    for tagged in fields:
        _descend(values, tagged.path).setdefault(UNKNOWN_TAGS, []).append((tagged.tag, tagged.data))


def _descend(values: Values, path: str) -> Values:
    """The struct that a tagged field's path names."""
    for step in path.split(".") if path else ():
        name, _, index = step.partition("[")
        values = values[name][int(index[:-1])] if index else values[name]
    return values
