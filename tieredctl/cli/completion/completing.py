"""Answers a shell that completes a command line: the first line says what the shell adds itself, each other line is a
candidate and what it means. Neither Typer nor a server is asked, and whatever goes wrong, nothing is offered.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tieredctl.cli.completion.command_table import CommandTable, Parameter, first_sentence
from tieredctl.cli.completion.completion_cache import TOPIC_NAME, SeenNames, cached_names
from tieredctl.cli.completion.half_typed import HalfTyped, half_typed, log_directories, places_of, words_of

VARIABLE = "_TIEREDCTL_COMPLETE"
"""Names the shell that asks."""
_BASH = "bash"
_WORDS, _UNFINISHED, _FILES, _DIRECTORIES = "words", "unfinished", "files", "directories"
"""What the shell does: it takes the candidates, takes them without a space after them, or completes paths itself."""
_HARMLESS = re.compile(r"[A-Za-z0-9._:/=+-]+", re.ASCII)
"""Candidates that no shell takes for anything but text; others are not offered."""
_ONLY_ALONE = "--version"
_HELP = {"--help": "Show this message and exit."}
_MOST_ENTRIES = 20_000
"""The most entries of a log directory that are looked at: beyond that, a keystroke would wait."""
_MOST_PARTITIONS = 200
_PARTITION_FOLDER = re.compile(r"(.+)-[0-9]+")

Candidates = Mapping[str, str]


class Answer(NamedTuple):
    """What a shell is told."""

    action: str = _WORDS
    candidates: Candidates = MappingProxyType({})
    kept: str = ""
    """What of the word comes before the part that is completed: `--log-dir=`, `file:`."""


class _Line(NamedTuple):
    table: CommandTable
    typed: HalfTyped
    environ: Mapping[str, str]

    def seen(self) -> SeenNames:
        return cached_names(places_of(self.typed, self.environ), self.environ)


def answer_shell(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """Writes what can follow: `arguments` are the words after the program's name, the last of which is completed; bash
    gives its line as one text."""
    try:
        text = _answer_text(arguments, environ)
    except Exception:  # noqa: BLE001 - a keystroke must not show an error in the middle of what is being typed
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer_text(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    if environ[VARIABLE] == _BASH:
        words, spelled = words_of(arguments[0])
        words = words[1:]
    else:
        words, spelled = list(arguments), ""
    *before, current = words
    table = CommandTable.installed()
    answer = _answer(_Line(table, half_typed(table, before), environ), current)
    offered = {
        name: meaning
        for name, meaning in answer.candidates.items()
        if name.startswith(current) and _HARMLESS.fullmatch(name)
    }
    dropped = _before_last_break(current, spelled, arguments[1]) if environ[VARIABLE] == _BASH else 0
    lines = [
        f"{answer.action}\t{answer.kept}",
        *(f"{name[dropped:]}\t{help_line}" for name, help_line in offered.items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _before_last_break(word: str, spelled: str, breaks: str) -> int:
    """How much of a word bash keeps: it completes what follows the last of the characters at which it breaks words,
    or an opening quote."""
    if spelled[:1] in ("'", '"'):
        return 0
    return max((word.rfind(one) + 1 for one in breaks if one in ":="), default=0)


def _answer(line: _Line, current: str) -> Answer:
    typed = line.typed
    if typed.awaited is not None:
        return _values(line, typed.awaited, current, "")
    name, equals, value = current.partition("=")
    if not typed.only_arguments and equals and name.startswith("--"):
        option = typed.command.options.get(name) or line.table.command(()).options.get(name)
        return Answer() if option is None else _values(line, option, value, f"{name}=")
    if not typed.only_arguments and current.startswith("-"):
        return Answer(candidates={**_options(line), **_ids_with_a_dash(line)})
    verbs = line.table.verbs(typed.command.words)
    if verbs:
        return Answer(candidates={} if typed.arguments else verbs)
    arguments = typed.command.arguments
    at = len(typed.arguments)
    if at < len(arguments):
        return _values(line, arguments[at], current, "")
    if arguments and arguments[-1].repeats:
        return _values(line, arguments[-1], current, "")
    return Answer(candidates={} if typed.only_arguments else _options(line))


def _options(line: _Line) -> Candidates:
    typed = {name for name, _ in line.typed.options}
    own = line.typed.command
    anywhere = {name: option for name, option in line.table.command(()).options.items() if name != _ONLY_ALONE}
    offered = {
        name: first_sentence(option.help)
        for name, option in {**own.options, **anywhere}.items()
        if name.startswith("--") and (option.repeats or option.names[0] not in typed)
    }
    return offered | _HELP


def _ids_with_a_dash(line: _Line) -> Candidates:
    """Kafka's ids may begin with what options begin with."""
    arguments, at = line.typed.command.arguments, len(line.typed.arguments)
    kind = arguments[at].kind if at < len(arguments) else ""
    ids = _KINDS[kind](line) if kind in ("segment-id", "topic-id") else {}
    return {name: meaning for name, meaning in ids.items() if name.startswith("-")}


def _values(line: _Line, parameter: Parameter, current: str, kept: str) -> Answer:
    kind, _, choices = parameter.kind.partition(":")
    if kind == "file":
        return Answer(_FILES, kept=kept)
    if kind == "directory":
        return Answer(_DIRECTORIES, kept=kept)
    if kind == "url":
        return _url(current, kept, is_file_too="PATH" in parameter.metavar)
    if kind == "choice":
        return Answer(candidates=_with(kept, dict.fromkeys(choices.split(","), "")))
    if kind in _UNFINISHED_KINDS and not _is_finished(kind, current):
        return Answer(_UNFINISHED, _with(kept, _UNFINISHED_KINDS[kind](line)))
    if kind in _KINDS:
        return Answer(candidates=_with(kept, _KINDS[kind](line)))
    if kind == "topic-partition":
        return Answer(candidates=_with(kept, _partitions(line, current.partition(":")[0])))
    return Answer()


def _with(kept: str, candidates: Candidates) -> Candidates:
    return {f"{kept}{name}": meaning for name, meaning in candidates.items()}


def _url(current: str, kept: str, *, is_file_too: bool) -> Answer:
    from tieredctl.ports.store_kinds import Address, store_kinds

    kinds = [kind for kind in store_kinds() if kind.address is not Address.NONE]
    for kind in kinds:
        if kind.address is Address.FOLDER and current.startswith(kind.begins):
            return Answer(_FILES if is_file_too else _DIRECTORIES, kept=kept + kind.begins)
    if is_file_too and not (current and any(kind.begins.startswith(current) for kind in kinds)):
        return Answer(_FILES, kept=kept)
    return Answer(_UNFINISHED, _with(kept, {kind.begins: f"a {kind.address}" for kind in kinds}))


def _is_finished(kind: str, current: str) -> bool:
    return kind == "topic-partition" and ":" in current


def _topics(line: _Line) -> Candidates:
    names = dict.fromkeys(name for name, _ in reversed(line.seen().topics))
    return dict.fromkeys([*names, *_topics_in_folders(log_directories(line.typed, line.environ))], "")


def _topics_in_folders(folders: Iterable[str]) -> Iterator[str]:
    """The topics of the partitions in log directories, whose names are those of their folders."""
    for folder in folders:
        try:
            with os.scandir(os.path.expanduser(folder)) as entries:
                for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                    match = _PARTITION_FOLDER.fullmatch(entry.name)
                    if match and not match[1].startswith("__") and TOPIC_NAME.fullmatch(match[1]):
                        yield match[1]
        except OSError:
            continue


def _begun_partitions(line: _Line) -> Candidates:
    return {f"{name}:": "" for name in _topics(line)}


def _partitions(line: _Line, topic: str) -> Candidates:
    highest = max((last for (name, _), last in line.seen().topics.items() if name == topic), default=-1)
    return {f"{topic}:{number}": "" for number in range(min(highest + 1, _MOST_PARTITIONS))}


def _topic_ids(line: _Line) -> Candidates:
    return {topic_id: name for name, topic_id in reversed(line.seen().topics) if topic_id}


def _segment_ids(line: _Line) -> Candidates:
    return dict(reversed(line.seen().segments.items()))


def _contexts(line: _Line) -> Candidates:
    from tieredctl.config.contexts import contexts

    del line
    return {one.name: one.bootstrap_server or one.store or "" for one in contexts().by_name.values()}


def _layouts(line: _Line) -> Candidates:
    return {"auto": "Detect it.", **_plugins(line, "tieredctl.layouts")}


def _metadata_sources(line: _Line) -> Candidates:
    return {f"{name}:": "" for name in _plugins(line, "tieredctl.metadata_sources")}


def _plugins(line: _Line, group: str) -> Candidates:
    from tieredctl.plugins import installed_names

    del line
    return dict.fromkeys(installed_names(group), "")


def _finding_codes(line: _Line) -> Candidates:
    from tieredctl.model.findings import FINDING_KINDS

    del line
    return dict.fromkeys(map(str, FINDING_KINDS), "")


def _codes(line: _Line) -> Candidates:
    from tieredctl.errors import ErrorCode

    return {**_finding_codes(line), **dict.fromkeys(map(str, ErrorCode), "")}


def _states(line: _Line) -> Candidates:
    from tieredctl.model.events import RemoteLogSegmentState

    del line
    return {state.name: "" for state in RemoteLogSegmentState}


def _parts(line: _Line) -> Candidates:
    from tieredctl.ports.layout import ORIGINAL_PARTS

    del line
    return dict.fromkeys(ORIGINAL_PARTS, "")


_KINDS: Mapping[str, Callable[[_Line], Candidates]] = {
    "topic": _topics,
    "topic-id": _topic_ids,
    "segment-id": _segment_ids,
    "context": _contexts,
    "layout": _layouts,
    "code": _codes,
    "finding-code": _finding_codes,
    "state": _states,
    "part": _parts,
}
_UNFINISHED_KINDS: Mapping[str, Callable[[_Line], Candidates]] = {
    "topic-partition": _begun_partitions,
    "metadata-source": _metadata_sources,
}
