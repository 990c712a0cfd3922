"""What can follow a command line that is being typed: by the table of commands, and by what was read before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, SECONDS, Tieredctl, environment
from tests.cli.offered_words import BROKER, PLACE, Offered, one_topic
from tests.metadata_logs import TOPIC_ID, segment_id
from tieredctl.cli.command_rows import tables, write_tables
from tieredctl.cli.completion.completing import VARIABLE, answer_shell
from tieredctl.cli.completion.completion_cache import remember

ROOT = Path(__file__).parents[2]
TABLES = [
    *ROOT.glob("tieredctl/**/command_table.tsv"),
    *ROOT.glob("plugins/*/*/command_table.tsv"),
    *ROOT.glob("spark/*/command_table.tsv"),
]
SHELLS = ["bash", "zsh", "fish"]
SCRIPTS = {"bash": "tieredctl.bash", "zsh": "_tieredctl", "fish": "tieredctl.fish"}


def test_the_table_of_commands_is_not_stale() -> None:
    assert {file: file.read_text(encoding="utf-8") for file in TABLES} == tables(), "run `make completions`"


def test_the_table_of_a_package_that_is_not_installed_is_not_passed_over_in_silence() -> None:
    with pytest.raises(SystemExit, match="No installed package with commands is called tieredctl_acme: install it"):
        write_tables(["tieredctl_inkless", "tieredctl_acme"])


def test_the_scripts_that_packagers_take_are_not_stale(tieredctl: Tieredctl) -> None:
    folder = REPOSITORY / "completions"

    assert {file.name for file in folder.iterdir()} == {*SCRIPTS.values()}
    for shell, name in SCRIPTS.items():
        printed = tieredctl("completions", shell).out
        assert (folder / name).read_text(encoding="utf-8") == printed, f"{name}: run `make completions`"


ANSWERS: list[tuple[tuple[str, ...], list[str]]] = [
    (("rem",), ["words", "remote"]),
    (("metadata", "se"), ["words", "segments"]),
    (("--no-color", "store", ""), ["words", "inspect", "check", "compare", "copy"]),
    (("--context", "store", "metadata", "se"), ["words", "segments"]),
    (("metadata", "segments", "--topic"), ["words", "--topic", "--topic-id"]),
    (("metadata", "segments", "--topic", "a", "--topi"), ["words", "--topic", "--topic-id"]),
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
    (
        ("verify", "--store", ""),
        ["unfinished", "abfss://", "az://", "file:", "gs://", "hdfs://", "s3://", "swebhdfs://", "webhdfs://"],
    ),
    (("verify", "--store=file:/v"), ["directories\t--store=file:"]),
    (("metadata", "segments", "--partition", ""), ["words"]),
    (("no-such-command", ""), ["words"]),
    (("metadata", "no-such-command", ""), ["words"]),
    (("metadata", "segments", "--no-such-option", "a", "--no-such=a"), ["words"]),
]


def test_what_is_typed_is_answered_by_the_commands(offered: Offered) -> None:
    for words, answer in ANSWERS:
        assert offered(*words) == answer, words


def test_every_command_is_answered_in_every_place(offered: Offered) -> None:
    for line in (line for file in TABLES for line in file.read_text(encoding="utf-8").splitlines()):
        path, what, names, *_ = line.split("\t")
        if what == "command":
            assert offered(*path.split(), "--hel")[1:] == ["--help"]
        if what == "option":
            action = offered(*path.split(), names.split()[0], "")[0].split("\t")[0]
            assert action in ("words", "unfinished", "files", "directories"), line


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


def test_a_completion_loads_neither_typer_nor_a_client(cache: Mapping[str, str]) -> None:
    script = (
        "import sys\nfrom tieredctl.cli import main\n"
        "for words in (['metadata', 'segments', '--topic', ''], ['context', 'use', ''], ['']):\n"
        "    try: main.main(words)\n"
        "    except SystemExit as end: assert not end.code\n"
        "print(sorted({'typer', 'rich', 'numpy', 'pyarrow', 'confluent_kafka', 'boto3'} & set(sys.modules)))"
    )
    variables = environment(**cache, **{VARIABLE: "fish"})
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=variables, timeout=SECONDS, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_what_no_shell_would_ask_is_answered_with_nothing() -> None:
    for arguments in ((), ("",), ("tieredctl 'meta",), ("\0", "\n"), ("tieredctl " * 10_000, ":")):
        for shell in (*SHELLS, "", "no-such-shell"):
            answer_shell(arguments, {VARIABLE: shell})


def test_a_shell_that_has_gone_is_no_failure(cache: Mapping[str, str]) -> None:
    program = f'"{sys.executable}" -m tieredctl ""'
    command = ["bash", "-o", "pipefail", "-c", f"{program} | true"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(**cache, **{VARIABLE: "zsh"}), timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
