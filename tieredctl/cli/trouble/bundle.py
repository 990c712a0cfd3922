"""A support bundle: what its parts are, what is left out of them, and the archive with its manifest."""

from __future__ import annotations

import gzip
import io
import json
import re
import secrets
import tarfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from tieredctl import __version__
from tieredctl.cli import PROGRAM
from tieredctl.model.ids import UUID_PATTERN
from tieredctl.model.pasteable import quoted
from tieredctl.model.printable import printable
from tieredctl.model.result_row import Column, ResultRow, Size, Wide
from tieredctl.ops.tiering.enable import NEVER_TIERED
from tieredctl.process.redaction import HIDDEN, is_secret, redacted
from tieredctl.process.replaced_file import replaced_file

MANIFEST = "manifest.json"
_FOLDER = f"{PROGRAM}-support"
_NAMES_OF_TOPICS = ("topic", "topicname", "topics")
_NAMES_OF_SETTINGS = ("name", "key", "setting", "config")
_KAFKAS_OWN = NEVER_TIERED | {"__diskless_metadata", "__remote_wal_log_metadata"}
"""Topics that every cluster may have, by Kafka or by a proposal (KIP-1164, KIP-1176): their names tell nothing."""
_TOPIC_RESOURCE = 2
"""ConfigResource.Type.TOPIC."""
_BEFORE_ID = re.compile(rf"(?:^|/)([^/\s]+)-{UUID_PATTERN}(?=/)")
"""What layouts call the folder of a topic or a partition in a remote store."""
_TOPIC_OF_FINDING = re.compile(r"^topic (.+)$", re.DOTALL)
"""What a finding is about that is about a topic,"""
_TOPIC_OF_SENTENCE = re.compile(r"\(topic ([^()\s]+)\)")
"""and which one a sentence names."""
_BEFORE_NUMBER = re.compile(r"(?:^|/)([^/\s]+)-[0-9]+(?=/|$)")
"""What brokers call the folder of a partition; no id of Kafka's ends with a digit."""


@dataclass(frozen=True, slots=True)
class PartRow(ResultRow):
    """A part in the manifest; `redacted` is how many secrets are hidden in it."""

    name: str
    what: Annotated[str, Column(after="redacted")]
    bytes: Size[int | None]
    sha256: Wide[str | None]
    redacted: Annotated[int, Column("HIDDEN")]
    problem: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the bundle, or what could not be had."""

    name: str
    what: str
    text: str | None
    """None where there is none."""
    problem: str | None = None
    """Why it is not there, or not whole."""
    is_withheld: bool = False
    """Whether it was left out on request."""

    def row(self) -> PartRow:
        data = None if self.text is None else self.text.encode()
        size, digest = (None, None) if data is None else (len(data), sha256(data).hexdigest())
        return PartRow(self.name, self.what, size, digest, (self.text or "").count(HIDDEN), self.problem)


def without_secrets(parts: Iterable[Part]) -> list[Part]:
    """The parts with each secret hidden, by name."""
    cleaned = [
        replace(
            *(part,),
            name=redacted(part.name),
            text=None if part.text is None else _redacted_document(part.text),
            problem=part.problem and redacted(part.problem),
        )
        for part in parts
    ]
    return sorted(cleaned, key=lambda part: part.name)


def without_names(parts: Sequence[Part], topics: Iterable[str]) -> list[Part]:
    """The parts with each topic's name replaced by a hash, the same in all parts of this bundle alone. Topics are those
    that are known, and those that a part names as one. What is plain text is left out: any word may be a topic."""
    parts = [part if _is_document(part.text) else _withheld(part) for part in parts]
    names = {*topics, *(name for part in parts for name in _topics(part.text))}
    hidden = HiddenNames({name for name in names if name and name not in _KAFKAS_OWN})
    return [
        replace(
            *(part,),
            name=hidden.in_path(part.name),
            text=None if part.text is None else _changed(part.text, hidden.in_text),
            problem=part.problem and hidden.in_path(part.problem),
        )
        for part in parts
    ]


def _withheld(part: Part) -> Part:
    problem = "Left out because of --hide-names: it is plain text, in which any word may be the name of a topic."
    return replace(part, text=None, problem=problem, is_withheld=True)


def manifest_of(parts: Sequence[Part], *, hides_names: bool) -> dict[str, Any]:
    """What is inside, what was taken out of it, and what could not be had."""
    return {
        "kind": "SupportBundle",
        PROGRAM: __version__,
        "topicNamesAreHidden": hides_names,
        "neverInside": ["records of topics", "passwords, keys and tokens", "the values of variables"],
        "items": [part.row().document() for part in parts],
    }


def write_bundle(
    to: Path, parts: Sequence[Part], manifest: Mapping[str, Any], *, force: bool, dry_run: bool = False
) -> None:
    """Writes the archive, for its owner alone; the same parts make the same bytes. A dry run writes nothing. Raises
    TieredctlError `unwritable`."""
    with replaced_file(to, force=force, dry_run=dry_run, is_last=True) as file:
        pack_bundle(file, parts, manifest)


def pack_bundle(file: BinaryIO, parts: Sequence[Part], manifest: Mapping[str, Any]) -> None:
    """The same, into a file that is open."""
    files = [(MANIFEST, json.dumps(manifest, indent=2) + "\n")]
    files += [(part.name, part.text) for part in parts if part.text is not None]
    with (
        gzip.GzipFile(fileobj=file, filename="", mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, text in files:
            data = text.encode()
            member = tarfile.TarInfo(f"{_FOLDER}/{name}")
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))


def _redacted_document(text: str) -> str:
    """Text without secrets; of a document string by string, so that it stays one."""
    return _changed(text, redacted)


def _changed(text: str, change: Any) -> str:
    try:
        return json.dumps(_each(json.loads(text), change), indent=2) + "\n"
    except (ValueError, RecursionError):
        pass
    try:
        return "".join(f"{json.dumps(_each(json.loads(line), change))}\n" for line in text.splitlines())
    except (ValueError, RecursionError):
        return str(change(text))


def _is_document(text: str | None) -> bool:
    """Whether it is JSON, or lines of it."""
    for documents in ([text or "null"], (text or "").splitlines()):
        with suppress(ValueError, RecursionError):
            for document in documents:
                json.loads(document)
            return True
    return False


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    if isinstance(value, dict):
        named = _setting_in(value)
        return {
            change(name): _hidden(one)
            if change is redacted and _is_secret(named if name == "value" else name, one)
            else _each(one, change)
            for name, one in value.items()
        }
    return value


def _setting_in(member: Mapping[str, Any]) -> str:
    """The setting whose value is in `{"name": "sasl.password", "value": "x"}`."""
    return next((one for one in map(member.get, _NAMES_OF_SETTINGS) if isinstance(one, str)), "")


def _is_secret(name: str, value: Any) -> bool:
    """`"password": "x"` is found as a setting, though neither string alone looks like one."""
    if is_secret(name):
        return True
    return isinstance(value, str) and redacted(f"{name}={value}") != f"{name}={redacted(value)}"


def _hidden(value: Any) -> Any:
    """What stands for all that a secret's setting has."""
    if isinstance(value, list):
        return [_hidden(one) for one in value]
    if isinstance(value, dict):
        return {redacted(name): _hidden(one) for name, one in value.items()}
    return value if value is None or isinstance(value, bool) or value == "" else HIDDEN


def _topics(text: str | None) -> Iterator[str]:
    for document in (text or "", *(text or "").splitlines()):
        with suppress(ValueError, RecursionError):
            yield from _topics_in(json.loads(document))


def _topics_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _topics_of_folders(value)
        yield from _TOPIC_OF_SENTENCE.findall(value)
    elif isinstance(value, list):
        for one in value:
            yield from _topics_in(one)
    elif isinstance(value, dict):
        yield from _topics_of_records(value)
        for name, one in value.items():
            if name.lower().endswith(_NAMES_OF_TOPICS):
                yield from _topics_named(one)
            elif name == "subject" and isinstance(one, str):
                yield from _TOPIC_OF_FINDING.findall(one)
            yield from _topics_of_folders(name)
            yield from _topics_in(one)


def _topics_named(value: Any) -> Iterator[str]:
    """By a member that is called so: `"topic": "orders"`, `"topics": ["orders"]` or `"topics": {"orders": 1}`."""
    names = [value] if isinstance(value, str) else value if isinstance(value, list | dict) else ()
    return (one for one in names if isinstance(one, str) and one)


def _topics_of_folders(text: str) -> Iterator[str]:
    """The topics in `prod/orders-ID/0/…`, `orders-0-ID/…` and `data/orders-0`. Rather a name too many than one too
    few."""
    for folder in _BEFORE_ID.findall(text):
        yield folder
        yield from _BEFORE_NUMBER.findall(folder)
    yield from _BEFORE_NUMBER.findall(text)


def _topics_of_records(member: Mapping[str, Any]) -> Iterator[str]:
    """The topics of a TopicRecord and a ConfigRecord in a KRaft snapshot or metadata log."""
    named = [member.get("name")] if "topicId" in member else []
    named += [member.get("resourceName")] if member.get("resourceType") == _TOPIC_RESOURCE else []
    return (one for one in named if isinstance(one, str) and one)


_DIGITS = 10
_WORD = re.compile(r"[A-Za-z0-9._-]+")
"""What Kafka takes as a name, and what `orders-0` is."""
_SEPARATOR = "-"
_FULL_STOP = "."


class HiddenNames:
    """Finds them as words, alone and in what is made of them: `orders-0`, `prod/orders-ID/0`; also at the end of a
    sentence. The time that it takes does not grow with the names: a cluster may have thousands."""

    def __init__(self, names: Collection[str]) -> None:
        salt = secrets.token_bytes(16)
        self._hashes = {name: f"topic-{sha256(salt + name.encode()).hexdigest()[:_DIGITS]}" for name in names}
        self._by_core: dict[str, list[str]] = defaultdict(list)
        """Names, which may begin or end with full stops, by what is between these."""
        for name in names:
            self._by_core[name.strip(_FULL_STOP)].append(name)
        self._most_pieces = max((name.count(_SEPARATOR) + 1 for name in names), default=0)
        self._odd_hashes = {
            spelled: self._hashes[name] for name in names if not _WORD.fullmatch(name) for spelled in _spellings(name)
        }
        odd = sorted(self._odd_hashes, key=len, reverse=True)
        self._odd = re.compile("|".join(map(re.escape, odd))) if odd else None
        """Those that Kafka would not take, but metadata may have."""

    def in_text(self, text: str) -> str:
        """The text with hashes for the names."""
        if self._odd is not None:
            text = self._odd.sub(lambda match: self._odd_hashes[match[0]], text)
        return _WORD.sub(lambda word: _SEPARATOR.join(self._hidden(word[0].split(_SEPARATOR))), text)

    def in_path(self, text: str) -> str:
        """Hides names in a file's path, or in a sentence that has one: files may be called `orders.json`."""
        text = self.in_text(text)
        for name in sorted((name for name in self._hashes if name in text), key=len, reverse=True):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", self._hashes[name], text)
        return text

    def _hidden(self, pieces: list[str]) -> Iterator[str]:
        at = 0
        while at < len(pieces):
            most = min(self._most_pieces, len(pieces) - at)
            for count in range(most, 0, -1):
                text = self._hidden_name(_SEPARATOR.join(pieces[at : at + count]))
                if text is not None:
                    break
            else:
                count, text = 1, pieces[at]
            yield text
            at += count

    def _hidden_name(self, word: str) -> str | None:
        """What stands for a name, with the full stops around it; None where the word is no name."""
        alike = (name for name in self._by_core.get(word.strip(_FULL_STOP), ()) if name in word)
        name = max(alike, key=len, default=None)
        return None if name is None else word.replace(name, self._hashes[name])


def _spellings(name: str) -> set[str]:
    """How a name that Kafka would not take is written: as it is, in a command, in a sentence and in a document."""
    return {name, quoted(name), repr(name)[1:-1], json.dumps(name)[1:-1], printable(name)}
