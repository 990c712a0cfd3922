"""A filter that is given several times means each of its values: what is found is what each would find alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

Words = tuple[str, ...]
METADATA, BOTH = "metadata", "both"
COMMANDS: dict[Words, str] = {
    ("metadata", "segments"): METADATA,
    ("metadata", "format"): METADATA,
    ("metadata", "stuck", "--older-than", "0s"): METADATA,
    ("remote", "ls"): "store",
    ("orphans", "scan", "--min-age", "0s"): BOTH,
    ("verify", "--level", "headers"): BOTH,
}
Found = Callable[..., Sequence[str]]


@pytest.fixture
def found(captures: Path, tieredctl: Tieredctl) -> Found:
    """The items of a command's answer as text, sorted."""
    capture = captures / "kafka-4.3.1"
    metadata = ("--log-dir", capture / "data")
    store = ("--store", f"file:{capture / 'remote/kafka-tiered-storage'}")
    places: dict[str, tuple[str | Path, ...]] = {METADATA: metadata, "store": store, BOTH: (*metadata, *store)}

    def ask(words: Words, *filters: str) -> Sequence[str]:
        outcome = tieredctl(*words, *places[COMMANDS[words]], *filters, "-o", "json")
        return sorted(json.dumps(item, sort_keys=True) for item in json.loads(outcome.out)["items"])

    return ask


def test_each_value_counts(found: Found) -> None:
    segments = [json.loads(one) for one in found(("metadata", "segments"))]
    ids = [str(one["segmentId"]) for one in segments]
    values = {
        "--topic": sorted({str(one["topic"]) for one in segments})[:2],
        "--topic-id": sorted({str(one["topicId"]) for one in segments})[:2],
        "--partition": ["0", "1"],
        "--segment-id": [ids[0], ids[-1]],
    }
    for words in COMMANDS:
        for option, (one, other) in values.items():
            if option == "--segment-id" and words[:2] in (("metadata", "format"), ("metadata", "stuck")):
                continue
            alone = sorted([*found(words, option, one), *found(words, option, other)])

            together = found(words, option, one, option, other)

            assert together == alone, (words, option)
            assert alone or words[0] == "verify" or words[1] == "stuck", (words, option)


def test_a_value_that_is_repeated_is_one(found: Found) -> None:
    for words in COMMANDS:
        assert found(words, "--partition", "1", "--partition", "1") == found(words, "--partition", "1"), words
