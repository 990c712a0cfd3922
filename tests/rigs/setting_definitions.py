"""Kafka's definitions of its settings, in the classes of its releases, and the copy of them that tieredctl carries
(`make kafka-messages`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tieredctl.formats import kafka_settings

from .line_program import LineProgram
from .maven import KafkaJars, kafka_jars

RELEASES = ("3.6.2", "3.7.2", "3.8.1", "3.9.1", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""One of each line since 3.6, the first with tiered storage."""
COPY = Path(kafka_settings.__file__).with_name(kafka_settings.DATA)
_KINDS = ("broker", "topic", "metadataTopic")
_CLIENTS = ("admin", "consumer", "producer")
_OR_ELSE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\] or (-?\d+)")
_MINUS_ONE_FALLS_BACK = "The default value of -1 means"
"""How 3.9 describes the sizes of thread pools: at least 1, or -1."""

Described = Mapping[str, Any]


@cache
def described(jars: KafkaJars) -> Described:
    """All that a release's classes say."""
    with LineProgram(jars, "SettingsOracle") as oracle:
        found: Described = oracle.ask(["definitions"])
        return found


def merged(releases: Mapping[str, Described]) -> dict[str, Any]:
    """The definitions of releases, by line, as tieredctl keeps them: each setting with what changed, and when."""
    lines = list(releases)
    newest = releases[lines[-1]]
    return {
        "lines": lines,
        "metadataVersions": _metadata_versions(releases.values(), lines[-1]),
        **{kind: _histories([one[kind] for one in releases.values()]) for kind in _KINDS},
        "client": _histories([_choices(newest)]),
        "dynamicBroker": sorted({name for one in releases.values() for name in one["dynamic"]}),
    }


def _metadata_versions(releases: Iterable[Described], newest: str) -> dict[str, list[int]]:
    """By line, the first and the last level of metadata.version; Kafka's next release has levels already."""
    levels: dict[str, list[int]] = {}
    for version, level in sorted({one for found in releases for one in found["metadataVersions"].items()}, key=_level):
        line = version.partition("-")[0]
        if level > 0 and _numbers(line) <= _numbers(newest):
            levels[line] = [min([level, *levels.get(line, [])]), level]
    return levels


def _level(pair: tuple[str, int]) -> int:
    return pair[1]


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))


def _choices(release: Described) -> dict[str, Any]:
    """Of the clients' settings, those with a few values to choose from; the clients agree on them."""
    return {
        name: one
        for client in _CLIENTS
        for name, one in release[client].items()
        if one["type"] == "STRING" and "oneOf" in (one["demand"] or {})
    }


def _histories(releases: list[Described]) -> dict[str, list[list[Any]]]:
    """By name: [index of the first release, type, default, demand] of each stretch of releases that are alike; only the
    index where the setting is gone."""
    found: dict[str, list[list[Any]]] = {}
    for name in sorted({name for one in releases for name in one}):
        history: list[list[Any]] = []
        for index, release in enumerate(releases):
            stated = _stated(release.get(name))
            if stated != (history[-1][1:] if history else []):
                history.append([index, *stated])
        found[name] = history
    return found


def _stated(one: Described | None) -> list[Any]:
    if one is None:
        return []
    demand = _demand(one["demand"] or {})
    return [one["type"], one["default"], *([demand] if demand else [])]


def _demand(given: Described) -> dict[str, Any]:
    text = given.get("text", "")
    if match := _OR_ELSE.fullmatch(text):
        return {"least": int(match[1]), "greatest": int(match[2]), "besides": int(match[3])}
    if text.startswith(_MINUS_ONE_FALLS_BACK):
        return {"least": 1, "besides": -1}
    return {name: value for name, value in given.items() if name != "text" and _says_something(value)}


def _says_something(value: object) -> bool:
    return value is not None and value is not False and value != []


def jars_by_line() -> dict[str, KafkaJars]:
    """The jars of each line's release."""
    return {release.rpartition(".")[0]: kafka_jars(release) for release in RELEASES}


def copy_text(definitions: Mapping[str, Any]) -> str:
    """JSON with a line for each setting, so that a new release shows in a comparison."""
    parts = []
    for name, value in definitions.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"{json.dumps(key)}:{_compact(one)}" for key, one in value.items())
            parts.append(f"{json.dumps(name)}:{{\n{rows}\n}}")
        else:
            parts.append(f"{json.dumps(name)}:{_compact(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    COPY.write_text(copy_text(merged({line: described(jars) for line, jars in jars_by_line().items()})), "utf-8")
