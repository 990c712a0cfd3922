"""What can follow a command line that is being typed: by the table of commands, and by what was read before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pexpect
import pytest

from tests.cli.command_line import SECONDS, environment, own_process
from tests.metadata_logs import PARTITION, TOPIC_ID, copied, segment_id, started, write_events
from tieredctl.cli.command_rows import table
from tieredctl.cli.completion.command_table import TABLE
from tieredctl.cli.completion.completing import VARIABLE, answer_shell
from tieredctl.cli.completion.completion_cache import SeenNames, cache_folder, cached_names, names_in, remember
from tieredctl.cli.completion.noticed_names import names_kept, noticed
from tieredctl.model.ids import TopicIdPartition

SHELLS = ["bash", "zsh", "fish"]
PLACE = "--bootstrap-server\0broker:9092"
BROKER = ("--bootstrap-server", "broker:9092")

Offered = Callable[..., list[str]]
"""`offered("metadata", "se")`: what can follow, after what the shell is told to do."""


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without a cache or a configuration."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str], cache: Mapping[str, str]) -> Offered:
    def offered(*words: str, **variables: str) -> list[str]:
        answer_shell(words, {VARIABLE: "zsh", **cache, **variables})
        out, err = capsys.readouterr()
        assert err == ""
        action, *candidates = out.splitlines()
        return [action.rstrip("\t"), *(line.partition("\t")[0] for line in candidates)]

    return offered


def one_topic() -> SeenNames:
    seen = SeenNames()
    seen.add_topic("orders", TOPIC_ID, 2)
    seen.add_segment(segment_id(7), "orders", 2)
    return seen


def test_the_table_of_commands_is_not_stale() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run `make completions`"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("rem",), ["words", "remote"]),
        (("metadata", "se"), ["words", "segments"]),
        (("--no-color", "store", ""), ["words", "inspect", "check"]),
        (("--context", "store", "metadata", "se"), ["words", "segments"]),
        (("metadata", "segments", "--topic"), ["words", "--topic", "--topic-id"]),
        (("metadata", "segments", "--topic", "a", "--topi"), ["words", "--topic-id"]),
        (("metadata", "segments", "--log-dir", "a", "--log"), ["words", "--log-dir"]),
        (("remote", "du", "-o", "js"), ["words", "json", "jsonl"]),
        (("remote", "du", "--output=js"), ["words", "--output=json", "--output=jsonl"]),
        (("store", "inspect", "--kind", "offset"), ["words", "offset-index"]),
        (("metadata", "segments", "--state", "COPY"), ["words", "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"]),
        (("remote", "read", "--part", "o"), ["words", "offset-index"]),
        (("verify", "--layout", "l"), ["words", "local"]),
        (("verify", "--fail-on", "e"), ["words", "error"]),
        (("verify", "--ignore", "batch-c"), ["words", "batch-corrupt"]),
        (("explain-code", "missing-e"), ["words", "missing-extra"]),
        (("completions", ""), ["words", *SHELLS]),
        (("--",), ["words", "--version", "--no-color", "--context", "--verbose", "--debug", "--help"]),
        (("store", "check", "--log-dir", ""), ["directories"]),
        (("store", "inspect", ""), ["files"]),
        (("store", "inspect", "a", "--", "--b"), ["files"]),
        (("orphans", "show", "--", ""), ["files"]),
        (("metadata", "segments", "--export=a"), ["files\t--export="]),
        (("verify", "--store", ""), ["unfinished", "file:", "s3://", "gs://"]),
        (("verify", "--store=file:/v"), ["directories\t--store=file:"]),
        (("metadata", "segments", "--partition", ""), ["words"]),
        (("no-such-command", ""), ["words"]),
        (("metadata", "no-such-command", ""), ["words"]),
        (("metadata", "segments", "--no-such-option", "a", "--no-such=a"), ["words"]),
    ],
    ids=" ".join,
)
def test_what_is_typed_is_answered_by_the_commands(offered: Offered, words: tuple[str, ...], answer: list[str]) -> None:
    assert offered(*words) == answer


def test_every_command_is_answered_in_every_place(offered: Offered) -> None:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        path, what, names, *_ = line.split("\t")
        words = path.split()
        if what == "command":
            assert offered(*words, "--hel")[1:] == ["--help"]
        if what == "option":
            assert offered(*words, names.split()[0], "")[0].split("\t")[0] in (
                "words",
                "unfinished",
                "files",
                "directories",
            )


def test_topics_partitions_and_ids_come_from_what_was_read_before(offered: Offered, cache: Mapping[str, str]) -> None:
    remember(one_topic(), [PLACE], cache)

    assert offered("metadata", "segments", *BROKER, "--topic", "") == ["words", "orders"]
    assert offered("metadata", "segments", *BROKER, "--topic-id", "") == ["words", TOPIC_ID]
    assert offered("metadata", "history", *BROKER, "") == ["words", segment_id(7)]
    assert offered("metadata", "epochs", *BROKER, "or") == ["unfinished", "orders:"]
    assert offered("metadata", "epochs", *BROKER, "orders:") == ["words", "orders:0", "orders:1", "orders:2"]
    assert offered("metadata", "epochs", "--bootstrap-server=broker:9092", "or") == ["unfinished", "orders:"]


def test_an_id_that_begins_with_a_dash_is_completed(offered: Offered, cache: Mapping[str, str]) -> None:
    seen, dashed = one_topic(), "-w" + segment_id(7)[2:]
    seen.add_segment(dashed, "orders", 2)
    remember(seen, [PLACE], cache)

    assert offered("metadata", "history", *BROKER, "-w") == ["words", dashed]
    assert offered("metadata", "history", *BROKER, "--", "") == ["words", dashed, segment_id(7)]


def test_names_of_one_place_are_not_offered_for_another(offered: Offered, cache: Mapping[str, str]) -> None:
    remember(one_topic(), [PLACE], cache)

    for elsewhere in (["--bootstrap-server", "other:9092"], ["--export", "broker:9092"], []):
        assert offered("metadata", "segments", *elsewhere, "--topic", "") == ["words"]


def test_a_variable_or_a_context_names_the_place_too(
    offered: Offered, cache: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(one_topic(), [PLACE], cache)
    configuration = tmp_path / "config.yaml"
    configuration.write_text("contexts:\n  prod:\n    bootstrapServer: broker:9092\n  test: {}\n")
    configuration.chmod(0o600)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(configuration))

    topic = ["words", "orders"]
    assert offered("metadata", "segments", "--topic", "", TIEREDCTL_BOOTSTRAP_SERVER="broker:9092") == topic
    assert offered("--context", "prod", "metadata", "segments", "--topic", "") == topic
    assert offered("--context", "test", "metadata", "segments", "--topic", "") == ["words"]
    assert offered("metadata", "segments", "--context", "") == ["words", "prod", "test"]
    assert offered("context", "use", "p") == ["words", "prod"]
    assert offered("context", "add", "p") == ["words"]


def test_a_configuration_that_cannot_be_used_offers_nothing(
    offered: Offered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "config.yaml"
    configuration.write_text("contexts: [")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(configuration))

    answer_shell(["context", "use", ""], {VARIABLE: "zsh"})

    assert offered("metadata", "segments", "--topic", "") == ["words"]


def test_folders_of_partitions_name_topics_before_any_command_was_run(offered: Offered, tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    for name in ("orders-0", "orders-1", "a.b-10", "$(touch pwned)-0", "__consumer_offsets-3", "orders-2.0-delete"):
        (log_dir / name).mkdir(parents=True)

    assert sorted(offered("metadata", "segments", "--log-dir", str(log_dir), "--topic", "")) == [
        "a.b",
        "orders",
        "words",
    ]


HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "a b",
    "a'b",
    'a"b',
    "a\\b",
    "a;b",
    "*",
    "~root",
    "\x1b[2J",
    "ä",
    "-a b",
    "",
]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_a_name_that_kafka_would_not_take_is_never_kept_or_offered(
    offered: Offered, cache: dict[str, str], name: str
) -> None:
    seen = one_topic()
    seen.add_topic(name, name, 0)
    seen.add_segment(name, name, 0)
    remember(seen, [PLACE], cache)
    folder = cache_folder(cache)
    assert folder is not None
    (file,) = folder.iterdir()
    with file.open("a", encoding="utf-8") as kept:
        kept.write(f"topic\t{name}\t{name}\t0\nsegment\t{name}\t{name}-0\n")

    found = [
        offered("metadata", "segments", *BROKER, "--topic", ""),
        offered("metadata", "segments", *BROKER, "--topic-id", ""),
        offered("metadata", "history", *BROKER, ""),
        offered("metadata", "epochs", *BROKER, ""),
    ]

    assert {one for answer in found for one in answer[1:]} <= {"orders", "orders:", TOPIC_ID, segment_id(7)}


def _nothing(file: Path) -> None:
    file.unlink()


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _queue(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _yesterday(file: Path) -> None:
    then = time.time() - 25 * 60 * 60
    os.utime(file, (then, then))


def _tomorrow(file: Path) -> None:
    then = time.time() + 25 * 60 * 60
    os.utime(file, (then, then))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": _nothing,
    "a folder": _folder,
    "a queue": _queue,
    "a link": _link,
    "too old": _yesterday,
    "of the future": _tomorrow,
    "writable for others": lambda file: file.chmod(0o622),
    "too large": lambda file: file.write_bytes(file.read_bytes() + b"\n" * (1 << 20)),
    "of another version": lambda file: file.write_bytes(file.read_bytes().replace(b" 1", b" 2")),
    "bytes": lambda file: file.write_bytes(bytes(range(256))),
    "empty": lambda file: file.write_bytes(b""),
    "of fields too many": lambda file: file.write_bytes(file.read_bytes().replace(b"\t", b"\t\t")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_offers_nothing_and_is_mended_by_the_next_command(
    offered: Offered, cache: Mapping[str, str], damage: str
) -> None:
    remember(one_topic(), [PLACE], cache)
    folder = cache_folder(cache)
    assert folder is not None
    (file,) = folder.iterdir()
    DAMAGES[damage](file)

    assert offered("metadata", "segments", *BROKER, "--topic", "") == ["words"]

    remember(one_topic(), [PLACE], cache)
    assert offered("metadata", "segments", *BROKER, "--topic", "") == [
        "words",
        *([] if damage == "a folder" else ["orders"]),
    ]


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


@pytest.mark.parametrize(
    "words", [("metadata", "segments", "--topic", ""), ("context", "use", ""), ("",)], ids=" ".join
)
def test_a_completion_loads_neither_typer_nor_a_client(words: tuple[str, ...], cache: Mapping[str, str]) -> None:
    script = (
        "import sys\nfrom tieredctl.cli import main\ntry: main.main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted({'typer', 'rich', 'numpy', 'pyarrow', 'confluent_kafka', 'boto3'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        env=environment(**cache, **{VARIABLE: "fish"}),
        timeout=SECONDS,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [(), ("",), ("tieredctl 'meta",), ("\0", "\n"), ("tieredctl " * 10_000, ":")])
def test_what_no_shell_would_ask_is_answered_with_nothing(arguments: tuple[str, ...]) -> None:
    for shell in (*SHELLS, "", "no-such-shell"):
        answer_shell(arguments, {VARIABLE: shell})


def test_a_shell_that_has_gone_is_no_failure(cache: Mapping[str, str]) -> None:
    program = f'"{sys.executable}" -m tieredctl ""'
    command = ["bash", "-o", "pipefail", "-c", f"{program} | true"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(**cache, **{VARIABLE: "zsh"}), timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
