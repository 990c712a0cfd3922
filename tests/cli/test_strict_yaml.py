"""The configuration file as YAML: fast or not, it says the same, and is read once by a command."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command_line import Tieredctl
from tests.cli.test_context_file import HOSTILE, WRITTEN
from tieredctl.config import strict_yaml
from tieredctl.config.strict_yaml import NotYaml, parsed

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates(),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=8), one, max_size=4),
)


PIECES = ["a: ", "- ", "\n", "  ", "b", "'x'", '"y"', "#c", "|\n", ">\n", "&a ", "*a", "---\n", *"{}[],?:-!%~1é\t\0"]
YAML = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


def told(data: bytes) -> object:
    """What a text says, or why it says nothing."""
    try:
        return parsed(data)
    except NotYaml as error:
        return str(error)


def told_without_libyaml(data: bytes) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", False)
        return told(data)


def test_libyaml_changes_neither_values_nor_reasons() -> None:
    for text in (*(HOSTILE[name] for name in HOSTILE if name != "nested"), WRITTEN, "", "---\n...\n"):
        assert told(text.encode()) == told_without_libyaml(text.encode()), text


@given(DOCUMENTS)
def test_any_document_is_the_same_with_libyaml(document: object) -> None:
    data = yaml.safe_dump(document, allow_unicode=True).encode()

    assert told(data) == told_without_libyaml(data)


@given(YAML)
def test_what_is_refused_without_libyaml_is_refused_for_the_same_reason(text: str) -> None:
    assert told(text.encode()) == told_without_libyaml(text.encode())


def test_what_is_nested_too_deep_is_a_reason() -> None:
    for deep in ("[" * 500_000, "- " * 400_000, "{a: " * 200_000):
        with pytest.raises(NotYaml):
            parsed(deep.encode())


def test_a_command_parses_the_file_once(tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, asked = tmp_path / "config.yaml", list[bytes]()
    config.write_text(WRITTEN + f"# {tmp_path}\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))

    def noted(data: bytes) -> object:
        asked.append(data)
        return parsed(data)

    monkeypatch.setattr(strict_yaml, "parsed", noted)

    outcome = tieredctl("context", "show", "prod")

    assert (outcome.exit_code, len(asked)) == (0, 1), outcome.err
