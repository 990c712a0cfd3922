"""What is said breaks between words in a narrow terminal; a command stays one that can be pasted."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command_line import Tieredctl
from tieredctl.cli.line_breaks import broken, broken_command

SENTENCES = st.lists(st.text("abc./:-", min_size=1, max_size=30), min_size=1, max_size=40).map(" ".join)
OPTIONS = st.sampled_from(["--store", "--bootstrap-server", "--log-dir"])
COMMANDS = st.lists(st.tuples(OPTIONS, st.text("abc:/", min_size=1, max_size=60)), max_size=8).map(
    lambda pairs: " ".join(("tieredctl orphans apply a.plan", *(f"{name} {value}" for name, value in pairs)))
)


@given(SENTENCES, st.integers(20, 200), st.sampled_from(["", "  "]))
def test_lines_have_all_words_and_no_more_than_the_width(sentence: str, width: int, indent: str) -> None:
    lines = broken(indent + sentence, width)

    assert " ".join(lines).split() == sentence.split()
    assert lines[0].startswith(indent)
    for line in lines:
        assert len(line) <= width or len(line.split()) == 1


@given(SENTENCES, COMMANDS, st.integers(40, 200))
def test_a_command_after_a_sentence_is_pasted_as_it_was(sentence: str, command: str, width: int) -> None:
    text = f"{sentence} Apply it with: {command}"

    shown = "\n".join(broken(text, width))

    assert shlex.split(shown[shown.index("tieredctl ") :].replace("\\\n", "")) == shlex.split(command)
    assert broken(text, None) == [text]


def test_an_option_stays_with_its_value_and_quoted_words_together() -> None:
    assert broken("Left out, since the terminal is narrow: LAG. -o wide shows all.", 48) == [
        "Left out, since the terminal is narrow: LAG.",
        "  -o wide shows all.",
    ]
    assert broken_command("tieredctl verify --store 'file:a b'", 20) == ["    tieredctl verify --store 'file:a b'"]


def test_errors_and_hints_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    most = 40 + len("file:/var/lib/tiered/kafka-tiered-storage.")
    for line in ("verify", "explain x", "metadata segments --state x --log-dir ."):
        assert max(map(len, tieredctl(*line.split()).err.splitlines())) <= most, line
