"""A context gives a command its cluster and its store, both or neither, and says so before anything is changed."""

from __future__ import annotations

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


def test_that_there_are_no_contexts_is_said(config: Path, tieredctl: Tieredctl) -> None:
    config.unlink()

    assert tieredctl("context", "list").err == f"There are no contexts in {config}.\n"


def test_values_come_from_the_option_then_the_variable_then_the_context_then_the_default(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(tieredctl)["layout"] == ("aiven", "context prod")
    assert shown(tieredctl)["commandConfig"] == (None, "default")
    monkeypatch.setenv("TIEREDCTL_LAYOUT", "local")
    assert shown(tieredctl)["layout"] == ("local", "TIEREDCTL_LAYOUT")
    assert shown(tieredctl, "--layout", "auto")["layout"] == ("auto", "--layout")
    assert shown(tieredctl)["store"] == ("s3://prod-bucket/kafka", "context prod")


def test_the_context_is_the_typed_one_then_that_of_the_variable_then_the_current_one(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(tieredctl)["bootstrapServer"] == ("127.0.0.1:1", "context prod")
    monkeypatch.setenv("TIEREDCTL_CONTEXT", "staging")
    assert shown(tieredctl)["bootstrapServer"] == ("127.0.0.1:2", "context staging")
    assert shown(tieredctl, "--context", "prod")["bootstrapServer"] == ("127.0.0.1:1", "context prod")


def test_store_options_are_added_to_those_of_the_context(config: Path, tieredctl: Tieredctl) -> None:
    options = shown(tieredctl, "--store-option", "endpoint=http://x")["storeOptions"]

    assert options == (["region=eu-central-1", "endpoint=http://x"], "--store-option, context prod")


@pytest.mark.parametrize("option", ["--store=s3://else", "--bootstrap-server=else:9092"])
def test_another_place_leaves_all_of_the_current_context_out(config: Path, tieredctl: Tieredctl, option: str) -> None:
    origins = {origin for _, origin in shown(tieredctl, option).values()}

    assert origins == {option.partition("=")[0], "default"}
    assert "is not used: --" in tieredctl("context", "show", option).err


@pytest.mark.parametrize("variable", ["LOG_DIR", "EXPORT", "METADATA_SOURCE"])
def test_metadata_from_elsewhere_is_shown_and_leaves_all_of_the_current_context_out(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    given, setting, value = {
        "LOG_DIR": ("/a:/b c", "logDirs", ["/a", "/b c"]),
        "EXPORT": ("/e.jsonl", "export", "/e.jsonl"),
        "METADATA_SOURCE": ("own:place", "metadataSource", "own:place"),
    }[variable]
    monkeypatch.setenv(f"TIEREDCTL_{variable}", str(given))

    settings = shown(tieredctl)

    assert settings.pop(setting) == (value, f"TIEREDCTL_{variable}")
    assert {origin for _, origin in settings.values()} == {"default"}
    assert f"is not used: TIEREDCTL_{variable} names another place" in tieredctl("context", "show").err


def test_metadata_from_elsewhere_is_shown_beside_a_typed_context(
    config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", "/a")

    settings = shown(tieredctl, "--context", "prod")

    assert settings["logDirs"] == (["/a"], "TIEREDCTL_LOG_DIR")
    assert settings["bootstrapServer"] == (None, "default")
    assert settings["store"] == ("s3://prod-bucket/kafka", "context prod")


def test_the_same_place_typed_leaves_it_in(config: Path, tieredctl: Tieredctl) -> None:
    assert shown(tieredctl, "--store", "s3://prod-bucket/kafka")["bootstrapServer"][1] == "context prod"


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
    ("recover", "indexes", "Ex-aw3fEQIi3do0H9Y7cKQ", "--apply"),
    ("recover", "metadata", "--apply"),
]


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
def test_a_change_on_another_cluster_never_takes_the_store_of_the_current_context(
    words: tuple[str, ...], config: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl(*words, "--bootstrap-server", "127.0.0.1:3")

    assert outcome.exit_code == 2
    assert "prod-bucket" not in outcome.err
    assert "Context prod is not used, because --bootstrap-server names another place" in outcome.err


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
@pytest.mark.parametrize("option", ["--store=s3://else", "--bootstrap-server=127.0.0.1:3"])
def test_a_change_takes_a_typed_context_whole_or_is_refused(
    words: tuple[str, ...], option: str, config: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("--context", "prod", *words, option)

    assert outcome.exit_code == 2
    assert outcome.err.startswith(f"tieredctl: {option.partition('=')[0]} and --context prod name two places.\n")


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
def test_a_change_begins_with_the_cluster_and_the_store_that_nobody_typed(
    words: tuple[str, ...], config: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl(*words)

    using = "Using cluster 127.0.0.1:1 (context prod), store s3://prod-bucket/kafka (context prod).\n"
    assert outcome.err.startswith(using)


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
@pytest.mark.parametrize("variable", ["STORE_OPTION", "LAYOUT", "LAYOUT_OPTION"])
@pytest.mark.parametrize("typed", [(), ("--store", "s3://b", "--bootstrap-server", "127.0.0.1:3")], ids=["", "typed"])
def test_a_change_takes_no_setting_of_another_store_from_a_forgotten_variable(
    words: tuple[str, ...],
    variable: str,
    typed: tuple[str, ...],
    config: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"TIEREDCTL_{variable}", "endpoint=http://127.0.0.1:4")

    outcome = tieredctl(*words, *typed)

    assert outcome.exit_code == 2
    other = "--store" if typed else "context prod"
    assert f"TIEREDCTL_{variable} is set, and may mean another place than {other}." in outcome.err


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
@pytest.mark.parametrize(
    ("typed", "variable"),
    [(("--bootstrap-server", "127.0.0.1:3"), "STORE"), (("--store", "s3://b"), "BOOTSTRAP_SERVER")],
)
def test_a_change_takes_no_cluster_or_store_of_a_forgotten_variable_beside_a_typed_one(
    words: tuple[str, ...],
    typed: tuple[str, ...],
    variable: str,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"TIEREDCTL_{variable}", "s3://a" if variable == "STORE" else "127.0.0.1:3")

    outcome = tieredctl(*words, *typed)

    assert outcome.exit_code == 2
    assert f"TIEREDCTL_{variable} is set, and may mean another place than {typed[0]}." in outcome.err


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


def test_a_store_of_the_context_is_read(cluster: CrashedClusterOnDisk, config: Path, tieredctl: Tieredctl) -> None:
    _, store, *_ = cluster.store
    config.write_text(f"contexts: {{here: {{store: '{store}', layout: aiven}}}}\ncurrentContext: here\n")

    listed = tieredctl("remote", "ls", "-o", "jsonl")
    verified = tieredctl("orphans", "scan", "--log-dir", cluster.log_dir, "--context", "here", "-o", "json")
    ambient = tieredctl("orphans", "scan", "--log-dir", cluster.log_dir, "-o", "json")

    assert len(listed.lines()) == LISTED
    assert verified.document()["summary"]["objects"] == LISTED
    assert ambient.exit_code == 2
    assert "give both, or --context here" in ambient.err


def test_a_command_without_a_context_knows_nothing_of_an_earlier_one_in_the_same_process(
    cluster: CrashedClusterOnDisk, config: Path, tieredctl: Tieredctl
) -> None:
    _, store, *_ = cluster.store
    prices = "[{store: 'file:', perGiBMonth: 1.5, currency: EUR}]"
    config.write_text(f"contexts: {{here: {{store: '{store}', layout: aiven, prices: {prices}}}}}\n")
    scan = ("orphans", "scan", "--log-dir", cluster.log_dir, *cluster.store, "-o", "json")
    before = dict(copy_context())

    assert tieredctl(*scan, "--context", "here").document()["summary"]["currency"] == "EUR"

    assert dict(copy_context()) == before
    assert tieredctl(*scan).document()["summary"]["currency"] is None


def test_directories_are_checked_against_no_cluster_that_was_not_named(
    config: Path, log_dir: Path, tieredctl: Tieredctl
) -> None:
    assert "127.0.0.1:1" not in tieredctl("store", "check", log_dir).err


def test_an_option_on_the_line_makes_another_source_in_the_environment_meaningless(
    log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEREDCTL_BOOTSTRAP_SERVER", "127.0.0.1:1")
    monkeypatch.setenv("TIEREDCTL_COMMAND_CONFIG", "/no/such")

    assert tieredctl("metadata", "segments", "--log-dir", log_dir).exit_code == 0


def test_a_variable_stands_for_its_option(log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", str(log_dir))
    monkeypatch.setenv("TIEREDCTL_OUTPUT", "json")

    assert tieredctl("metadata", "segments").document()["kind"] == "RemoteLogSegments"


@pytest.mark.parametrize("variable", ["TIEREDCTL_BOOTSTRAP_SERVER", "TIEREDCTL_CONTEXT"])
def test_a_verb_after_a_noun_that_is_a_command_too_takes_them_itself(
    variable: str, config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1:1" if "SERVER" in variable else "prod")

    assert tieredctl("doctor", "upgrade", "3.9", "4.0").exit_code in (0, 3)


@pytest.mark.parametrize("words", [("--context",), ("--context=",), ("--context", "")])
def test_a_context_has_a_name(words: tuple[str, ...], tieredctl: Tieredctl) -> None:
    outcome = tieredctl("topic", "list", *words)

    assert (outcome.exit_code, outcome.err.splitlines()[0]) == (2, "tieredctl: --context needs a context's name.")


def test_an_unknown_context_is_refused_with_those_there_are(config: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("topic", "list", "--context", "nope")

    assert (outcome.exit_code, outcome.err) == (
        2,
        "tieredctl: There is no context 'nope'.\n  There are: prod, staging.\n",
    )


def test_an_unknown_context_is_refused_by_commands_that_take_nothing_of_it_too(
    config: Path, tieredctl: Tieredctl
) -> None:
    for words, _ in commands():
        assert tieredctl(*words, "--context", "nope")[:2] == (2, ""), words


def test_help_is_shown_whatever_the_context(config: Path, tieredctl: Tieredctl) -> None:
    assert tieredctl("topic", "list", "--context", "nope", "--help").exit_code == 0


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


def test_a_command_to_paste_names_what_the_context_gave(
    cluster: CrashedClusterOnDisk, config: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store, *_ = cluster.store
    config.write_text(f"contexts: {{here: {{store: '{store}', layout: aiven}}}}\n")
    monkeypatch.setenv("TIEREDCTL_LOG_DIR", str(cluster.log_dir))

    outcome = tieredctl("orphans", "scan", "--context", "here")

    assert f"--log-dir {cluster.log_dir} --store {store} --layout aiven" in outcome.err.replace("\n", " ").replace(
        "  ", " "
    )
