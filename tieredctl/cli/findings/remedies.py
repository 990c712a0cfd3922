"""Remedies as commands to paste: with the places that this run was given where the table has an ellipsis."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from functools import cached_property

from tieredctl.cli import PROGRAM, running_words
from tieredctl.cli.typed_words import TypedWords, options_of, typed
from tieredctl.model.pasteable import quoted
from tieredctl.model.quantities import duration_ms
from tieredctl.process.redaction import HIDDEN, is_secret

_REST = "…"
_SERVER = "--bootstrap-server"
_PLACES = (
    *("--log-dir", _SERVER, "--bootstrap-controller", "--command-config", "--export", "--offline-metadata"),
    *("--metadata-source", "--metadata-source-option", "--as-of", "--kraft-snapshot", "--live-topic-ids"),
    *("--control-plane", "--store", "--store-option", "--layout", "--layout-option", "--inventory", "--key-list"),
    *("--topic", "--topic-id", "--partition", "--min-age", "--now", "--foreign", "--unknown", "--allow-young"),
)
"""Options that say where things are and which are meant: given to one command, they hold for the next too."""
_OTHER_SOURCES = ("--log-dir", _SERVER, "--export", "--metadata-source")
_OF_CLUSTERS = ("topic status", "topic enable", "topic disable", "partition remove", "wal clean", "doctor")
_CLUSTERS = (_SERVER, "--kraft-snapshot", "--offline-metadata")
"""What these commands are about: one of them has to be given."""
_FOLDERS = {"store check": "--log-dir"}
"""Commands whose arguments are what others take as an option."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*:[^/\s]*(?=@)")
"""User and password in a URL."""
_LEAST_AGE_MS = 3_600_000
"""A lower --min-age is for looking only."""


def next_command(text: str) -> str:
    """A command that follows from this run, with its places instead of the ellipsis."""
    return Remedies(running_words.get()).pasteable(text)


def remedy_shown(remedy: str) -> str:
    """A finding's remedy as a command that follows from this run; empty where it is this run again."""
    return Remedies(running_words.get()).shown(remedy)


class Remedies:
    """Remedies for the reader of one run, whose words these are."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)

    def shown(self, remedy: str) -> str:
        """The command as `pasteable`; empty where it is this run again, which would end as it began."""
        filled = self.pasteable(remedy)
        return "" if filled.startswith(f"{PROGRAM} ") and self._is_this_run(filled) else filled

    def _is_this_run(self, command: str) -> bool:
        """How a run shows what it finds makes no other run of it."""
        if not command.startswith(f"{PROGRAM} {self._typed.command}"):
            return False
        run, line = self._typed, typed(shlex.split(command)[1:])
        return (line.command, line.arguments) == (run.command, run.arguments) and {*line.options} <= {*run.options}

    def pasteable(self, remedy: str) -> str:
        """The remedy with the places of this run; in capitals what this run does not know."""
        if remedy.startswith(f"{PROGRAM} "):
            return self._own(remedy)
        return remedy.replace(f"{_SERVER} {_REST}", f"{_SERVER} {self._server}{self._config_of_kafka(remedy)}")

    def _own(self, remedy: str) -> str:
        filled = remedy.replace(f"{_SERVER} HOST:PORT", f"{_SERVER} {self._server}")
        filled = filled.replace("--store URL", f"--store {self._store}")
        if _REST not in remedy:
            config = self._value("--command-config")
            return f"{filled} --command-config {quoted(config)}" if filled != remedy and config else filled
        taken = options_of(remedy.split()[1:])
        named = [word for word in remedy.split() if word.startswith("--")]
        options = [
            f"{option} {quoted(_shown(option, value))}" if value else option
            for option, value in self._places
            if option in taken and (option not in named or option.endswith("-option"))
            if not (option == "--min-age" and duration_ms(value) < _LEAST_AGE_MS and not self._allows_young)
        ]
        if remedy.startswith(tuple(f"{PROGRAM} {one}" for one in _OF_CLUSTERS)) and not self._has_cluster:
            options = [one for one in options if not one.startswith(_OTHER_SOURCES)] + [f"{_SERVER} HOST:PORT"]
        if "paths" in taken:
            options += [quoted(path) for path in self._typed.arguments]
        return filled.replace(f" {_REST}", " " + " ".join(options) if options else "")

    def _config_of_kafka(self, remedy: str) -> str:
        config = self._value("--command-config")
        return f" --command-config {quoted(config)}" if config and not remedy.startswith("kafka-dump") else ""

    @property
    def _allows_young(self) -> bool:
        return any(name == "--allow-young" for name, _ in self._typed.options)

    @property
    def _has_cluster(self) -> bool:
        return any(name in _CLUSTERS for name, _ in self._places)

    @property
    def _server(self) -> str:
        return quoted(self._value(_SERVER) or "HOST:PORT")

    @property
    def _store(self) -> str:
        url = self._value("--store")
        return "URL" if url is None else quoted(_shown("--store", url))

    def _value(self, option: str) -> str | None:
        return next((value for name, value in self._places if name == option), None)

    @cached_property
    def _typed(self) -> TypedWords:
        return typed(self._words)

    @cached_property
    def _places(self) -> list[tuple[str, str]]:
        line = self._typed
        option = _FOLDERS.get(line.command)
        folders = [(option, path) for path in line.arguments] if option else []
        if any(name in _OTHER_SOURCES for name, _ in line.options):
            folders = []
        return [*folders, *((name, value) for name, value in line.options if name in _PLACES)]


def _shown(option: str, value: str) -> str:
    """A setting of a store or a layout may hold a secret, unless it names a file; so may any URL, before its host."""
    name, _, setting = value.partition("=")
    if option.endswith("-option") and is_secret(name) and not os.path.exists(setting):
        return f"{name}={HIDDEN}"
    return _PASSWORD.sub(HIDDEN, value)
