"""A context gives a command its cluster and its store, both or neither, and says so before anything is changed."""

from __future__ import annotations

import itertools
import os
from contextvars import copy_context
from pathlib import Path

import pytest
import typer

from tests.cli.command_line import Tieredctl
from tests.cli.command_tree import commands
from tests.cli.crashed_cluster import LISTED, CrashedClusterOnDisk
from tests.metadata_logs import copied, segment_id, write_events
from tieredctl.cli import named_context, running_words
from tieredctl.cli.option_groups import flattened
from tieredctl.cli.places import ClusterOptions, RemoteOptions

CONTEXTS = """
contexts:
  prod:
    bootstrapServer: "127.0.0.1:1"
    store: s3://prod-bucket/kafka
    storeOptions: {region: eu-central-1}
    layout: aiven
  staging:
    bootstrapServer: "127.0.0.1:2"
    store: s3://staging-bucket
currentContext: prod
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file with two contexts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    path = tmp_path / "xdg/tieredctl/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(CONTEXTS)
    return path


def shown(tieredctl: Tieredctl, *words: str) -> dict[str, tuple[object, str]]:
    """Each setting's value and origin."""
    outcome = tieredctl("context", "show", *words, "-o", "json")
    assert outcome.exit_code == 0, outcome.err
    return {row["setting"]: (row["value"], row["from"]) for row in outcome.document()["items"]}


def test_values_come_from_the_option_then_the_variable_then_the_context_then_the_default(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(tieredctl)["layout"] == ("aiven", "context prod")
    assert shown(tieredctl)["commandConfig"] == (None, "default")
    assert shown(tieredctl)["bootstrapServer"] == ("127.0.0.1:1", "context prod")
    monkeypatch.setenv("TIEREDCTL_LAYOUT", "local")
    monkeypatch.setenv("TIEREDCTL_CONTEXT", "staging")
    assert shown(tieredctl)["layout"] == ("local", "TIEREDCTL_LAYOUT")
    assert shown(tieredctl)["bootstrapServer"] == ("127.0.0.1:2", "context staging")
    assert shown(tieredctl, "--layout", "auto")["layout"] == ("auto", "--layout")
    assert shown(tieredctl, "--context", "prod")["bootstrapServer"] == ("127.0.0.1:1", "context prod")


def test_store_options_are_added_to_those_of_the_context(config: Path, tieredctl: Tieredctl) -> None:
    options = shown(tieredctl, "--store-option", "endpoint=http://x")["storeOptions"]

    assert options == (["region=eu-central-1", "endpoint=http://x"], "--store-option, context prod")


def test_another_place_leaves_all_of_the_current_context_out(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in ("--store=s3://else", "--bootstrap-server=else:9092"):
        origins = {origin for _, origin in shown(tieredctl, option).values()}
        assert origins == {option.partition("=")[0], "default"}
    assert shown(tieredctl, "--store", "s3://prod-bucket/kafka")["bootstrapServer"][1] == "context prod"

    for variable, given, setting, value in (
        ("LOG_DIR", "/a:/b c", "logDirs", ["/a", "/b c"]),
        ("EXPORT", "/e.jsonl", "export", "/e.jsonl"),
        ("METADATA_SOURCE", "own:place", "metadataSource", "own:place"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"TIEREDCTL_{variable}", given)
            settings, beside = shown(tieredctl), shown(tieredctl, "--context", "prod")
        of_variable = (value, f"TIEREDCTL_{variable}")
        assert (settings.pop(setting), beside[setting]) == (of_variable, of_variable)
        assert {origin for _, origin in settings.values()} == {"default"}, variable
        assert beside["bootstrapServer"] == (None, "default"), variable
        assert beside["store"] == ("s3://prod-bucket/kafka", "context prod"), variable


def test_a_secret_in_a_variable_is_not_shown(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEREDCTL_STORE_OPTION", "secret-key=hunter2")

    outcome = tieredctl("context", "show", "-o", "json")

    assert "hunter2" not in outcome.out + outcome.err
    assert "secret-key=(hidden)" in outcome.out


CHANGING = [
    ("orphans", "plan", "--to", "/no/such/plan"),
    ("orphans", "purge", "--older-than", "7d"),
    ("partition", "remove", "Ex-aw3fEQIi3do0H9Y7cKQ:0", "--apply"),
    ("heal", "--all", "--apply"),
    ("recover", "indexes", "Ex-aw3fEQIi3do0H9Y7cKQ", "--apply"),
    ("recover", "metadata", "--apply"),
]


SERVER, STORE = ("--bootstrap-server", "127.0.0.1:3"), ("--store", "s3://b")


@pytest.mark.usefixtures("asked_once", "no_restart_awaited")
def test_a_change_takes_the_context_whole_or_is_refused(config: Path, tieredctl: Tieredctl) -> None:
    for words in CHANGING:
        begun = tieredctl(*words)
        using = "Using cluster 127.0.0.1:1 (context prod), store s3://prod-bucket/kafka (context prod).\n"
        assert begun.err.startswith(using), words

        elsewhere = tieredctl(*words, *SERVER)
        assert (elsewhere.exit_code, "prod-bucket" in elsewhere.err) == (2, False), words
        assert "Context prod is not used, because --bootstrap-server names another place" in elsewhere.err, words
        for option in (SERVER, STORE):
            refused = tieredctl("--context", "prod", *words, *option)
            assert refused.exit_code == 2, (words, option)
            assert refused.err.startswith(f"tieredctl: {option[0]} and --context prod name two places.\n"), words


def test_a_change_takes_nothing_of_another_place_from_a_forgotten_variable(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[tuple[str, tuple[str, ...], str]] = [("STORE", SERVER, "--bootstrap-server")]
    forgotten.append(("BOOTSTRAP_SERVER", STORE, "--store"))
    for variable in ("STORE_OPTION", "LAYOUT", "LAYOUT_OPTION"):
        forgotten += [(variable, (), "context prod"), (variable, (*STORE, *SERVER), "--store")]
    values = {"STORE": "s3://a", "BOOTSTRAP_SERVER": "127.0.0.1:3"}

    for words, (variable, typed, other) in itertools.product(CHANGING, forgotten):
        config.write_text("{}" if variable in values else CONTEXTS)
        with monkeypatch.context() as patch:
            patch.setenv(f"TIEREDCTL_{variable}", values.get(variable, "endpoint=http://127.0.0.1:4"))
            outcome = tieredctl(*words, *typed)

        assert outcome.exit_code == 2, (words, variable)
        said = f"TIEREDCTL_{variable} is set, and may mean another place than {other}."
        assert said in outcome.err, (words, variable)


def test_a_command_to_paste_has_the_settings_of_the_context_that_a_typed_one_joins(config: Path) -> None:
    config.write_text(
        "contexts: {here: {bootstrapServer: 'h:1', store: s3://b, "
        "storeOptions: {endpoint: 'http://minio:9', region: a}}}\n"
    )
    seen: list[str] = []

    @flattened
    def command(*, cluster: ClusterOptions, remote: RemoteOptions) -> None:
        seen.extend(running_words.get())

    app = typer.Typer()
    app.command()(command)
    words = ["--store-option", "region=b"]

    def run_as_typed() -> None:
        named_context.set("here")
        running_words.set(tuple(words))
        app(words, standalone_mode=False)

    copy_context().run(run_as_typed)  # what the context gives is of this command alone

    assert " ".join(seen) == (
        "--store-option region=b --bootstrap-server h:1 --store s3://b --store-option endpoint=http://minio:9"
    )


def test_a_command_reads_the_store_of_its_own_context_alone(
    cluster: CrashedClusterOnDisk, config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store, *_ = cluster.store
    prices = "[{store: 'file:', perGiBMonth: 1.5, currency: EUR}]"
    here = f"contexts: {{here: {{store: '{store}', layout: aiven, prices: {prices}}}}}\n"
    config.write_text(f"{here}currentContext: here\n")
    scan = ("orphans", "scan", "--log-dir", cluster.log_dir, "-o", "json")

    assert len(tieredctl("remote", "ls", "-o", "jsonl").lines()) == LISTED
    assert tieredctl(*scan).exit_code == 2
    config.write_text(here)
    before = dict(copy_context())
    with_context = tieredctl(*scan, "--context", "here").document()["summary"]
    assert (with_context["objects"], with_context["currency"]) == (LISTED, "EUR")
    assert dict(copy_context()) == before
    assert tieredctl(*scan, *cluster.store).document()["summary"]["currency"] is None

    monkeypatch.setenv("TIEREDCTL_LOG_DIR", str(cluster.log_dir))
    pasted = tieredctl("orphans", "scan", "--context", "here").err.replace("\n", " ").replace("  ", " ")
    assert f"--log-dir {cluster.log_dir} --store {store} --layout aiven" in pasted


def test_directories_are_checked_against_no_cluster_that_was_not_named(
    config: Path, log_dir: Path, tieredctl: Tieredctl
) -> None:
    assert "127.0.0.1:1" not in tieredctl("store", "check", log_dir).err


def test_a_variable_stands_for_its_option_and_means_nothing_where_another_source_is_typed(
    log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEREDCTL_BOOTSTRAP_SERVER", "127.0.0.1:1")
    monkeypatch.setenv("TIEREDCTL_COMMAND_CONFIG", "/no/such")
    assert tieredctl("metadata", "segments", "--log-dir", log_dir).exit_code == 0
    assert tieredctl("doctor", "upgrade", "3.9", "4.0").exit_code in (0, 3)

    monkeypatch.undo()
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", str(log_dir))
    monkeypatch.setenv("TIEREDCTL_OUTPUT", "json")
    assert tieredctl("metadata", "segments").document()["kind"] == "RemoteLogSegments"


def test_a_context_that_is_unknown_or_has_no_name_is_refused_by_every_command(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (("--context",), ("--context=",), ("--context", "")):
        assert tieredctl("topic", "list", *words)[:2] == (2, ""), words
    for command, _ in commands():
        refused = tieredctl(*command, "--context", "nope")
        assert (refused.exit_code, refused.out, "prod, staging" in refused.err) == (2, "", True), command
    assert tieredctl("topic", "list", "--context", "nope", "--help").exit_code == 0
    monkeypatch.setenv("TIEREDCTL_CONTEXT", "prod")
    assert tieredctl("doctor", "upgrade", "3.9", "4.0").exit_code in (0, 3)
    monkeypatch.setenv("TIEREDCTL_CONTEXT", "pord")
    assert "TIEREDCTL_CONTEXT" in tieredctl("remote", "du").err


def test_log_directories_of_a_variable_are_as_in_path(
    tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "disk 1", tmp_path / "disk 2"]
    for number, folder in enumerate(folders):
        write_events(folder, *copied(number + 1, number * 10, number * 10 + 9), metadata_partition=number)
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", os.pathsep.join(map(str, folders)))

    assert [row["segmentId"] for row in tieredctl("metadata", "segments", "-o", "jsonl").lines()] == [
        segment_id(1),
        segment_id(2),
    ]
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", f"{folders[0]}{os.pathsep}")
    assert tieredctl("metadata", "segments").err.startswith("tieredctl: An empty text is not a path.\n")
