"""Topics and segment ids that commands have read, for completions: a small file for each place, for a day.

A completion asks no server. Nothing in such a file is believed: what is not shaped like a name or an id is left out,
and a file that is damaged, too old, too large or another user's is not there.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

_FIRST_LINE = "tieredctl completions 1"
_TOPIC, _SEGMENT = "topic", "segment"
_MOST_TOPICS = 2_000
_MOST_SEGMENTS = 1_000
_MOST_FILES = 32
_LARGEST_FILE = 1 << 20
_LASTS_S = 24 * 60 * 60
_CLOCK_SKEW_S = 60
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_NAME = "completions-{}.tsv"


@dataclass(slots=True)
class SeenNames:
    """What commands have read of a place; the latest comes last."""

    topics: dict[tuple[str, str], int] = field(default_factory=dict)
    """The highest partition that was seen, by name and id; the id is empty where it was not seen."""
    segments: dict[str, str] = field(default_factory=dict)
    """TOPIC-PARTITION by id."""

    def add_topic(self, name: object, topic_id: object, partition: object) -> None:
        """Adds one, unless it is not shaped like one."""
        number = partition if isinstance(partition, int) else -1
        known_id = topic_id if isinstance(topic_id, str) and _ID.fullmatch(topic_id) else ""
        if isinstance(name, str) and TOPIC_NAME.fullmatch(name):
            key = name, known_id
            self.topics[key] = max(number, self.topics.pop(key, -1))

    def add_segment(self, segment_id: object, topic: object, partition: object) -> None:
        """Adds one, unless it is not shaped like one."""
        if isinstance(segment_id, str) and _ID.fullmatch(segment_id):
            is_named = isinstance(topic, str) and TOPIC_NAME.fullmatch(topic) and isinstance(partition, int)
            self.segments.pop(segment_id, None)
            self.segments[segment_id] = f"{topic}-{partition}" if is_named else ""

    def add(self, other: SeenNames) -> None:
        """Adds all that another has."""
        for (name, topic_id), partition in other.topics.items():
            self.add_topic(name, topic_id, partition)
        for segment_id, where in other.segments.items():
            self.segments.pop(segment_id, None)
            self.segments[segment_id] = where

    def text(self) -> str:
        """The names as a file has them, without the oldest of too many."""
        topics = islice(reversed(self.topics.items()), _MOST_TOPICS)
        segments = islice(reversed(self.segments.items()), _MOST_SEGMENTS)
        lines = [
            *(f"{_TOPIC}\t{name}\t{topic_id}\t{partition}" for (name, topic_id), partition in topics),
            *(f"{_SEGMENT}\t{segment_id}\t{where}" for segment_id, where in segments),
        ]
        return "".join(f"{line}\n" for line in [_FIRST_LINE, *reversed(lines)])


def names_in(text: str) -> SeenNames:
    """What a file says; nothing of what is not understood."""
    names = SeenNames()
    first, *lines = text.split("\n")
    for line in lines[: _MOST_TOPICS + _MOST_SEGMENTS] if first == _FIRST_LINE else ():
        match line.split("\t"):
            case [kind, name, topic_id, partition] if kind == _TOPIC:
                names.add_topic(name, topic_id, int(partition) if _NUMBER.fullmatch(partition) else -1)
            case [kind, segment_id, where] if kind == _SEGMENT:
                topic, _, partition = where.rpartition("-")
                names.add_segment(segment_id, topic, int(partition) if _NUMBER.fullmatch(partition) else None)
    return names


def cached_names(places: Iterable[str], environ: Mapping[str, str]) -> SeenNames:
    """What was read of these places within a day."""
    names = SeenNames()
    folder = cache_folder(environ)
    for place in places:
        text = None if folder is None else _fresh_text(folder / _file_name(place))
        if text is not None:
            names.add(names_in(text))
    return names


def remember(noticed: SeenNames, places: Iterable[str], environ: Mapping[str, str]) -> None:
    """Adds what a command has read of these places, if it can be kept; otherwise nothing is said."""
    folder = cache_folder(environ)
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in places:
            path = folder / _file_name(place)
            text = _fresh_text(path)
            names = SeenNames() if text is None else names_in(text)
            names.add(noticed)
            _replace(path, names.text())
        _remove_oldest(folder)
    except OSError:
        return


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """`$XDG_CACHE_HOME/tieredctl`; None where no folder is known. The specification ignores relative paths."""
    named = environ.get("XDG_CACHE_HOME", "")
    folder = named if os.path.isabs(named) else os.path.join(environ.get("HOME", ""), ".cache")
    return Path(folder, "tieredctl") if os.path.isabs(folder) else None


def _file_name(place: str) -> str:
    from hashlib import blake2b

    return _NAME.format(blake2b(os.fsencode(place), digest_size=12).hexdigest())


def _fresh_text(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
            age_s = time.time() - status.st_mtime
            if not is_own or not -_CLOCK_SKEW_S <= age_s <= _LASTS_S or status.st_size > _LARGEST_FILE:
                return None
            return file.read(_LARGEST_FILE).decode("ascii")
    except (OSError, ValueError):
        return None


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("ascii"))
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_oldest(folder: Path) -> None:
    files = sorted(folder.glob(_NAME.format("*")), key=lambda path: path.lstat().st_mtime)
    for path in files[:-_MOST_FILES]:
        path.unlink(missing_ok=True)
