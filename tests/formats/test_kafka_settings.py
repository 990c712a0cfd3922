"""Kafka's settings as tieredctl carries them: what Kafka refuses is refused, what it takes is taken."""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.driven_brokers import jars_of
from tests.rigs.line_program import LineProgram
from tests.rigs.prerequisites import RigMissing
from tests.rigs.setting_definitions import described
from tieredctl.formats.kafka_settings import (
    Line,
    SettingKind,
    definition,
    is_allowed,
    is_in_line,
    lines_of,
    metadata_version_line,
    setting_names,
)

RELEASES = {(3, 9): "3.9.1", (4, 3): "4.3.1", (4, 4): "4.4.0"}
"""Those whose brokers the tests run."""
KINDS = (SettingKind.BROKER, SettingKind.TOPIC, SettingKind.METADATA_TOPIC)
TIERING = ("remote.", "log.remote.", "log.local.", "local.", "follower.fetch.", "cleanup.policy", "segment.")
WORDS = [
    "",
    " ",
    "abc",
    "true",
    " TRUE ",
    "yes",
    "ture",
    "False",
    "delete",
    "compact, delete",
    "delete,delete",
    ",",
    "1_000",
]
NUMBERS = [
    "-0",
    "+5",
    " 7 ",
    "0x10",
    "1e3",
    "0.5",
    "0.7",
    "-0.1",
    ".5",
    "5.",
    "1d",
    "1f",
    "NaN",
    "Infinity",
    "0x1p-1",
    "٣",
]
LIMITS = [
    -(1 << 63),
    -(1 << 31),
    -131072,
    -5,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    9,
    14,
    1 << 20,
    (1 << 15) - 1,
    (1 << 31) - 1,
    (1 << 63) - 1,
]
EDGES = [*WORDS, *NUMBERS, *(str(limit + step) for limit in LIMITS for step in (-1, 0, 1))]
RANDOM_VALUES = int(os.environ.get("TIEREDCTL_SETTING_VALUES", "5"))


def settings_oracle(line: Line) -> LineProgram:
    try:
        return LineProgram(jars_of(RELEASES[line]), "SettingsOracle")
    except RigMissing as missing:
        rig_unavailable(str(missing))


def values(seed: str) -> list[str]:
    chance = random.Random(seed)
    letters = "0123456789-+.eE_ ,xa"
    return [*EDGES, *("".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(RANDOM_VALUES))]


@pytest.mark.integration
@pytest.mark.parametrize("line", RELEASES)
def test_kafka_refuses_what_the_definitions_refuse_and_takes_what_they_take(line: Line) -> None:
    with settings_oracle(line) as oracle:
        for kind in KINDS:
            names = [
                name
                for name in sorted(setting_names(kind))
                if name.startswith(TIERING) and is_in_line(kind, name, line)
            ]
            settings = [(name, value) for name in names for value in values(f"{line} {name}")]

            takes = [refusal is None for refusal in oracle.ask([f"values {kind} {json.dumps(settings)}"])]

            ours = [is_allowed(kind, name, value, line) for name, value in settings]
            differing = [one for one, theirs, own in zip(settings, takes, ours, strict=True) if theirs != own]
            assert differing == [], (kind, differing)


@pytest.mark.integration
@pytest.mark.parametrize("line", RELEASES)
def test_the_definitions_are_those_of_the_release(line: Line) -> None:
    release = described(jars_of(RELEASES[line]))

    for kind in KINDS:
        theirs = {name: (one["type"], one["default"]) for name, one in release[kind].items()}
        names = [name for name in setting_names(kind) if is_in_line(kind, name, line)]
        ours = {name: (one.type, one.default) for name in names if (one := definition(kind, name, line)) is not None}
        assert ours == theirs
    lines = {version: level for version, level in release["metadataVersions"].items() if level > 0}
    for version, level in lines.items():
        major, minor = map(int, version.partition("-")[0].split("."))
        assert metadata_version_line(level) == ((major, minor) if (major, minor) <= max(RELEASES) else None), version


def test_a_setting_is_known_by_the_lines_that_have_it() -> None:
    assert lines_of(SettingKind.BROKER, "follower.fetch.last.tiered.offset.enable") == ((4, 3), (4, 4))
    assert lines_of(SettingKind.BROKER, "zookeeper.connect") == ((3, 6), (3, 9))
    assert lines_of(SettingKind.TOPIC, "remote.copy.lag.ms") == ((4, 4), (4, 4))
    assert lines_of(SettingKind.TOPIC, "log.local.retention.ms") is None
