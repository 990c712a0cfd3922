"""The difference of two images of a cluster, change by change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tieredctl.kraft.entries import Entry, Kind, entries, shown
from tieredctl.kraft.image import ClusterImage
from tieredctl.process.redaction import HIDDEN


class Change(NamedTuple):
    """What became of one thing: `before` is None for one that is new, `after` for one that is gone. Of one that
    changed, both have the fields that differ; a secret that changed is hidden in both."""

    kind: Kind
    subject: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def words(self) -> str:
        """The change, for people."""
        what = f"{self.kind} {self.subject}"
        if self.before is None or self.after is None:
            values = self.after if self.before is None else self.before
            return f"{what} was {'added' if self.before is None else 'removed'}: {in_words(values or {})}"
        changed_values = ", ".join(
            f"{name} {_word(value)} -> {_word(self.after[name])}" if value != HIDDEN else f"{name} changed {HIDDEN}"
            for name, value in self.before.items()
        )
        return f"{what}: {changed_values}"


def in_words(values: Mapping[str, Any]) -> str:
    """Values that are shown, for people: without those that are empty."""
    return ", ".join(f"{name} {_word(value)}" for name, value in values.items() if value not in (None, []))


def changes(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    """What changed from one image to the other, kind by kind; what went before what came."""
    earlier, later = _by_kind(before), _by_kind(after)
    for kind in Kind:
        yield from _of_kind(earlier[kind], later[kind])


def _by_kind(image: ClusterImage) -> dict[Kind, list[Entry]]:
    entries_by_kind: dict[Kind, list[Entry]] = {kind: [] for kind in Kind}
    for entry in entries(image):
        entries_by_kind[entry.kind].append(entry)
    return entries_by_kind


def _of_kind(earlier: list[Entry], later: list[Entry]) -> Iterator[Change]:
    now = {entry.key: entry for entry in later}
    for entry in earlier:
        if entry.key not in now:
            yield Change(entry.kind, entry.subject, shown(entry, entry.values), None)
    was = {entry.key: entry for entry in earlier}
    for entry in later:
        old = was.get(entry.key)
        if old is None:
            yield Change(entry.kind, entry.subject, None, shown(entry, entry.values))
        elif old.values != entry.values or _is_renamed(old, entry):
            yield _changed(old, entry)


def _changed(old: Entry, new: Entry) -> Change:
    differing = [name for name in new.values if old.values.get(name) != new.values[name]]
    before, after = ({name: one.values.get(name) for name in differing} for one in (old, new))
    names = ({"name": old.subject}, {"name": new.subject}) if _is_renamed(old, new) else ({}, {})
    return Change(new.kind, new.subject, names[0] | shown(new, before), names[1] | shown(new, after))


def _is_renamed(old: Entry, new: Entry) -> bool:
    """Whether a topic has another name: Kafka renames none."""
    return new.kind is Kind.TOPIC and old.subject != new.subject


def _word(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, Mapping):
        return " ".join(map(_word, value.values()))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
