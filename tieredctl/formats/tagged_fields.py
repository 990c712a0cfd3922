"""Tagged fields that a schema does not know, by the path of the struct that carries them."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.formats.schema import UNKNOWN_TAGS
from tieredctl.formats.wire import Values
from tieredctl.model.events import TaggedField


def tagged_fields(values: Values, path: str = "") -> list[TaggedField]:
    """Those of a decoded struct and of the structs in it."""
    found = [TaggedField(path, tag, data) for tag, data in values.get(UNKNOWN_TAGS, ())]
    for name, value in values.items():
        if not isinstance(value, dict | list) or name == UNKNOWN_TAGS:
            continue
        inner = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            found += tagged_fields(value, inner)
        else:
            for index, element in enumerate(value):
                if isinstance(element, dict):
                    found += tagged_fields(element, f"{inner}[{index}]")
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
