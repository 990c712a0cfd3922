"""The names that completions offer: kept by commands at a terminal, damaged, hostile, and never missed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pexpect
import pytest

from tests.cli.command_line import SECONDS, environment, own_process
from tests.cli.offered_words import BROKER, PLACE, Offered, one_topic
from tests.metadata_logs import PARTITION, TOPIC_ID, copied, segment_id, started, write_events
from tieredctl.cli.completion.completion_cache import SeenNames, cache_folder, cached_names, names_in, remember
from tieredctl.cli.completion.noticed_names import names_kept, noticed
from tieredctl.model.ids import TopicIdPartition

HOSTILE = ["$(touch pwned)", "`touch a`", "a b", "a'b", 'a"b', "a\\b", "a;b", "*", "~root", "\x1b[2J", "ä", "-a b", ""]
HOURS_25 = 25 * 60 * 60


def the_file_of(cache: Mapping[str, str]) -> Path:
    folder = cache_folder(cache)
    assert folder is not None
    (file,) = folder.iterdir()
    return file


def test_a_name_that_kafka_would_not_take_is_never_kept_or_offered(offered: Offered, cache: dict[str, str]) -> None:
    seen = one_topic()
    for name in HOSTILE:
        seen.add_topic(name, name, 0)
        seen.add_segment(name, name, 0)
    remember(seen, [PLACE], cache)
    with the_file_of(cache).open("a", encoding="utf-8") as kept:
        for name in HOSTILE:
            kept.write(f"topic\t{name}\t{name}\t0\nsegment\t{name}\t{name}-0\n")

    asked = ("segments --topic", "segments --topic-id", "history", "epochs")
    found = [offered("metadata", verb, *BROKER, *option, "") for verb, *option in map(str.split, asked)]

    assert {one for answer in found for one in answer[1:]} <= {"orders", "orders:", TOPIC_ID, segment_id(7)}


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _queue(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _moved(file: Path, seconds: float) -> None:
    os.utime(file, (time.time() + seconds, time.time() + seconds))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "a folder": _folder,
    "a queue": _queue,
    "a link": _link,
    "too old": lambda file: _moved(file, -HOURS_25),
    "of the future": lambda file: _moved(file, HOURS_25),
    "writable for others": lambda file: file.chmod(0o622),
    "too large": lambda file: file.write_bytes(file.read_bytes() + b"\n" * (1 << 20)),
    "of another version": lambda file: file.write_bytes(file.read_bytes().replace(b" 1", b" 2")),
    "bytes": lambda file: file.write_bytes(bytes(range(256))),
    "empty": lambda file: file.write_bytes(b""),
    "of fields too many": lambda file: file.write_bytes(file.read_bytes().replace(b"\t", b"\t\t")),
}


def test_a_damaged_cache_offers_nothing_and_is_mended_by_the_next_command(
    offered: Offered, cache: Mapping[str, str], tmp_path: Path
) -> None:
    for what, damage in DAMAGES.items():
        own = {**cache, "XDG_CACHE_HOME": str(tmp_path / what)}
        remember(one_topic(), [PLACE], own)
        damage(the_file_of(own))

        asked = ("metadata", "segments", *BROKER, "--topic", "")
        assert offered(*asked, **own) == ["words"], what
        remember(one_topic(), [PLACE], own)
        assert offered(*asked, **own) == ["words", *([] if what == "a folder" else ["orders"])], what


def test_the_cache_is_the_users_own_and_bounded(cache: Mapping[str, str]) -> None:
    for number in range(40):
        remember(one_topic(), [f"place {number}"], cache)
    many = SeenNames()
    for number in range(5_000):
        many.add_topic(f"{'long' * 50}-{number}", "", number)
        many.add_segment(segment_id(number), "orders", number)
    remember(many, ["place 39"], cache)

    folder = cache_folder(cache)
    assert folder is not None
    files = list(folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert len(files) == 32
    assert max(file.stat().st_size for file in files) < 1 << 20
    kept = cached_names(["place 39"], cache)
    assert next(reversed(kept.topics))[0].endswith("-4999")
    assert next(reversed(kept.segments)) == segment_id(4999)
    assert names_in(kept.text()).text() == kept.text()


def test_a_cache_that_cannot_be_written_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    remember(one_topic(), [PLACE], {"XDG_CACHE_HOME": str(tmp_path / "file")})
    remember(one_topic(), [PLACE], {})

    assert cached_names([PLACE], {"XDG_CACHE_HOME": str(tmp_path / "file")}).topics == {}
    assert cached_names([PLACE], {}).topics == {}


def test_a_command_at_a_terminal_keeps_what_it_read_and_one_in_a_script_does_not(
    offered: Offered, cache: dict[str, str], tmp_path: Path
) -> None:
    orders = TopicIdPartition(TOPIC_ID, "orders", 3)
    write_events(tmp_path / "logs", *copied(1, 0, 9, partition=orders), started(2, 0, 9, partition=PARTITION))
    words = ["metadata", "segments", "--topic", "orders", "--log-dir", str(tmp_path / "logs")]
    asks = ["metadata", "history", "--log-dir", str(tmp_path / "logs"), ""]

    assert own_process(*words, **cache).exit_code == 0
    assert offered(*asks) == ["words"]

    terminal = pexpect.spawn(sys.executable, ["-m", "tieredctl", *words], env=environment(**cache), timeout=SECONDS)
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert terminal.exitstatus == 0
    assert offered(*asks) == ["words", segment_id(1)]
    assert offered("metadata", "segments", *words[-2:], "--topic", "") in (
        ["words", "t", "orders"],
        ["words", "orders", "t"],
    )


class _ReadOnce:
    """Items that can be written as text, many at a time."""

    def __iter__(self) -> Iterator[dict[str, object]]:
        raise AssertionError("read one by one")

    def json_lines(self) -> Iterator[str]:
        yield "{}"


def test_items_are_shown_as_they_are_although_names_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here, there = os.openpty()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text, rows = _ReadOnce(), [{"topic": "orders", "partition": number} for number in range(3)]

    with open(there, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with names_kept(["metadata", "segments", *BROKER]):
            assert noticed(text) is text
            assert noticed(rows) is rows
            assert list(noticed(iter(rows))) == rows
        monkeypatch.undo()

    os.close(here)
    assert list(cached_names([PLACE], {"XDG_CACHE_HOME": str(tmp_path)}).topics.items()) == [(("orders", ""), 2)]
