"""Contexts in the configuration file, which is never changed, and in files of their own: what they may have."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment
from tieredctl.config.context_changes import add_context
from tieredctl.config.contexts import Context, contexts
from tieredctl.errors import TieredctlError

WRITTEN = """\
# Ours.
prices:
  - {store: "s3://", perGiBMonth: 0.023, currency: USD}  # list price

contexts:
    # The one that matters.
    prod:
        bootstrapServer: broker:9092   # behind the VPN
        store: s3://prod
    # For tries.
    staging: {store: "s3://staging"}
# The end.
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the configuration file is to be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "tieredctl/config.yaml"
    path.parent.mkdir()
    return path


@pytest.fixture
def kept(config: Path) -> Path:
    """The folder with a file for each context."""
    folder = config.parent / "contexts.d"
    folder.mkdir()
    return folder


def bomb() -> str:
    levels = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
    return f"a0: &a0 {{x: y}}\n{levels}"


HOSTILE = {
    "not YAML": "contexts: [",
    "binary": "\x00\x01",
    "a list": "- a",
    "unknown": "context: {}",
    "aliases": bomb(),
    "nested": "[" * 20_000,
    "twice": "contexts: {a: {store: 's3://a'}, a: {store: 's3://b'}}",
    "contexts of another type": "contexts: 3",
    "a context of another type": "contexts: {a: 3}",
    "a name of another type": "contexts: {3: {store: 's3://a'}}",
    "a name with a line's end": 'contexts: {"a\\nb": {store: "s3://a"}}',
    "unknown in a context": "contexts: {a: {stroe: 's3://a'}}",
    "servers of another type": "contexts: {a: {bootstrapServer: [b:1]}}",
    "no server": "contexts: {a: {bootstrapServer: here}}\ncurrentContext: a",
    "options of another type": "contexts: {a: {store: 's3://a', storeOptions: [region]}}",
    "an option of another type": "contexts: {a: {store: 's3://a', storeOptions: {region: 3}}}",
    "options of no store": "contexts: {a: {storeOptions: {region: x}}}",
    "a price that is no number for Python": f"prices: [{{store: 's3://a', perGiBMonth: 1{'0' * 400}, currency: USD}}]\n"
    f"contexts: {{a: {{store: 's3://a', prices: [{{store: 's3://a', perGiBMonth: 1{'0' * 400}, currency: USD}}]}}}}",
    "prices of another type": "contexts: {a: {store: 's3://a', prices: 3}}",
    "a current one that is not there": "currentContext: a",
    "a current one of another type": "contexts: {a: {store: 's3://a'}}\ncurrentContext: [a]",
    "huge": "#" * (1 << 20) + "\n",
    "a tag": "contexts: !!python/object/apply:os.system [exit]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_cannot_be_used_is_a_sentence(text: str, config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(text)

    outcome = tieredctl("topic", "list")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: {config} cannot be used: ")
    assert outcome.err.count("\n") == 2


HOSTILE_CONTEXTS = {
    "not YAML": "{",
    "binary": "\x00\x01",
    "a list": "- a",
    "aliases": bomb(),
    "nested": "[" * 20_000,
    "twice": "store: 's3://a'\nstore: 's3://b'",
    "unknown": "stroe: 's3://a'",
    "a secret": "sasl.jaas.config: hunter2",
    "credentials": "store: 's3://user:hunter2@a'",
    "options of no store": "storeOptions: {region: x}",
    "prices of another type": "{store: 's3://a', prices: 3}",
    "huge": "#" * (1 << 20) + "\n",
    "a tag": "!!python/object/apply:os.system [exit]",
}


def test_a_context_of_its_own_that_cannot_be_used_is_a_sentence(kept: Path, tieredctl: Tieredctl) -> None:
    for name, text in HOSTILE_CONTEXTS.items():
        (kept / "a.yaml").write_text(text)

        outcome = tieredctl("topic", "list")

        assert (outcome.exit_code, outcome.out) == (2, ""), name
        assert outcome.err.startswith(f"tieredctl: {kept / 'a.yaml'} cannot be used: "), name
        assert outcome.err.count("\n") == 2, name
        assert "hunter2" not in outcome.err, name


def test_a_name_of_a_file_that_no_context_may_have_is_a_sentence(kept: Path, tieredctl: Tieredctl) -> None:
    for name in ("a b", "-a", "é", "a" * 101):
        file = kept / f"{name}.yaml"
        file.write_text("store: s3://a")

        outcome = tieredctl("topic", "list")

        file.unlink()
        assert outcome.exit_code == 2, name
        assert "a context's name has letters" in outcome.err, name


def test_contexts_that_everybody_may_write_are_refused(kept: Path, tieredctl: Tieredctl) -> None:
    (kept / "a.yaml").write_text("store: s3://a")
    (kept / "current").write_text("a")
    for path in (kept, kept / "a.yaml", kept / "current"):
        mode = path.stat().st_mode
        path.chmod(0o777)

        outcome = tieredctl("context", "list")

        path.chmod(mode)
        assert outcome.exit_code == 2, path
        assert outcome.err.startswith(f"tieredctl: {path} cannot be used: everybody may write it.\n"), path
    assert tieredctl("context", "list").exit_code == 0


def test_a_current_context_that_is_gone_is_a_sentence_until_another_is_chosen(kept: Path, tieredctl: Tieredctl) -> None:
    (kept / "current").write_text("gone\n")

    outcome = tieredctl("context", "list")

    assert (outcome.exit_code, outcome.err.startswith(f"tieredctl: {kept / 'current'} cannot be used: ")) == (2, True)
    assert tieredctl("context", "use", "--none").exit_code == 0
    assert tieredctl("context", "list").exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        "contexts: {a: {store: 's3://a', storeOptions: {secret-access-key: hunter2}}}",
        "contexts: {a: {bootstrapServer: 'b:1', sasl.jaas.config: hunter2}}",
        "contexts: {a: {bootstrapServer: 'b:1', commandConfig: {sasl.jaas.config: hunter2}}}",
        "contexts: {a: {store: 's3://user:hunter2@a'}}",
        "contexts: {a: {store: 's3://a?token=hunter2'}}",
        "contexts: {a: {store: 's3://a', storeOptions: {endpoint: 'https://user:hunter2@minio:9000'}}}",
        "contexts: {a: {store: 's3://a', layout: aiven, layoutOptions: {private-key: 'https://user:hunter2@keys/1'}}}",
        "sasl.jaas.config: hunter2",
        "contexts: {a: {password: hunter2, store: 's3://a'}",
        "contexts: {a: {layout: x, store: 's3://a', layoutOptions: {password: hunter2}}}",
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_shown(text: str, config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(text)

    for words in (("context", "show"), ("context", "list"), ("topic", "list")):
        outcome = tieredctl(*words)
        assert outcome.exit_code == 2
        assert "hunter2" not in outcome.out + outcome.err


def test_a_file_that_everybody_may_write_is_refused(config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(WRITTEN)
    config.chmod(0o666)

    assert tieredctl("context", "list").err == (
        f"tieredctl: {config} cannot be used: everybody may write it.\n  Run `chmod o-w {config}`.\n"
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_not_a_file_is_not_waited_for(make: object, config: Path, tieredctl: Tieredctl) -> None:
    make(config)  # type: ignore[operator]

    assert "cannot be used: it " in tieredctl("context", "list").err


def test_a_device_is_not_replaced_by_a_file(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    """It is only tried: where it would be, the machine that runs this test would lose it."""
    monkeypatch.setenv("TIEREDCTL_CONFIG", os.devnull)

    for words in (("add", "archive", "--store", "file:/archive"), ("remove", "archive"), ("use", "archive")):
        outcome = tieredctl("context", *words, "--dry-run")

        assert (outcome.exit_code, outcome.out) == (1, "")
        assert "/dev/null exists and is not a regular file" in outcome.err


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_not_a_file_is_not_replaced(make: object, config: Path, tieredctl: Tieredctl) -> None:
    make(config)  # type: ignore[operator]

    outcome = tieredctl("context", "add", "archive", "--store", "file:/archive")

    assert (outcome.exit_code, "exists and is not a regular file" in outcome.err) == (1, True)
    assert [path.name for path in config.parent.iterdir()] == [config.name]


def test_without_a_file_nothing_is_different_and_no_yaml_is_loaded(config: Path, log_dir: Path) -> None:
    program = (
        "import sys\nfrom tieredctl.cli.main import run\n"
        f"code = run(['metadata', 'segments', '--log-dir', {str(log_dir)!r}])\n"
        "print(code, 'yaml' in sys.modules, file=sys.stderr)\n"
        "code = run(['topic', 'list'])\n"
        "print(code, 'yaml' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True, timeout=60
    )

    assert [line for line in done.stderr.splitlines() if line.endswith(("True", "False"))] == ["0 False", "2 False"]


@pytest.mark.parametrize(
    "text", [WRITTEN, "{contexts: {prod: {store: 's3://a'}}}", "%YAML 1.1\n---\n# mine\ncontexts:\n  prod: {}\n"]
)
def test_the_configuration_file_stays_as_it_was_written(text: str, config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(text)

    for words in (("use", "prod"), ("add", "new", "--store", "s3://new"), ("remove", "new"), ("use", "--none")):
        assert tieredctl("context", *words).exit_code == 0, words
        assert contexts().current == ("prod" if words != ("use", "--none") else None), words

    assert config.read_text() == text


def test_removing_takes_a_context_alone(config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(f"{WRITTEN}currentContext: new\n")
    for name in ("new", "newer"):
        add_context(Context(name, store="s3://new"), replace=False)
    assert contexts().current == "new"

    assert tieredctl("context", "remove", "new").exit_code == 0

    left = contexts()
    assert (sorted(left.by_name), left.current) == (["newer", "prod", "staging"], None)


def test_a_context_of_the_configuration_file_is_its_users_to_remove(config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(WRITTEN)
    add_context(Context("prod", store="s3://other"), replace=True)
    assert contexts().by_name["prod"].store == "s3://other"

    for words in (("remove", "prod"), ("remove", "staging")):
        outcome = tieredctl("context", *words)
        assert (outcome.exit_code, str(config) in outcome.err) == (2, True), words

    assert contexts().by_name["prod"].store == "s3://other"


def test_a_context_is_replaced_only_by_force(config: Path, tieredctl: Tieredctl) -> None:
    words = ("context", "add", "a", "--store")
    assert tieredctl(*words, "s3://first").exit_code == 0

    refused = tieredctl(*words, "s3://second")
    assert (refused.exit_code, contexts().by_name["a"].store) == (2, "s3://first")
    assert tieredctl(*words, "s3://second", "--force").exit_code == 0
    assert contexts().by_name["a"].store == "s3://second"


@pytest.mark.parametrize(
    "words",
    [
        ("a b", "--store", "s3://x"),
        ("", "--store", "s3://x"),
        ("a",),
        ("a", "--store", "s3://x", "--store-option", "secret-access-key=hunter2"),
        ("a", "--store", "s3://user:hunter2@x"),
        ("a", "--store", "s3://x", "--store-option", "endpoint=https://user:hunter2@minio:9000"),
        ("a", "--bootstrap-server", "here"),
        ("a", "--layout", "aiven"),
    ],
)
def test_what_the_file_may_not_have_is_not_added(words: tuple[str, ...], config: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("context", "add", *words)

    assert outcome.exit_code == 2
    assert "hunter2" not in outcome.err
    assert not any(config.parent.iterdir())


def test_runs_at_the_same_time_lose_nothing(kept: Path) -> None:
    names = [f"c{number}" for number in range(24)]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: add_context(Context(name, store=f"s3://{name}"), replace=False), names))

    assert sorted(contexts().by_name) == sorted(names)
    assert sorted(path.name for path in kept.iterdir()) == sorted(f"{name}.yaml" for name in names)


def test_a_link_to_the_file_stays_one(config: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    (tmp_path / "dotfiles").write_text(WRITTEN)
    config.symlink_to(tmp_path / "dotfiles")

    assert tieredctl("context", "use", "prod").exit_code == 0

    assert config.is_symlink()
    assert contexts().current == "prod"


def test_a_folder_that_cannot_be_written_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))

    outcome = tieredctl("context", "add", "a", "--store", "s3://a")

    assert (outcome.exit_code, outcome.err.count("\n")) == (1, 2)
    assert "cannot be changed: Not a directory" in outcome.err


def test_prices_of_a_context_go_before_those_of_the_file(config: Path) -> None:
    from tieredctl.config.file import prices_of_context, storage_price

    config.write_text(WRITTEN)
    token = prices_of_context.set([{"store": "s3://", "perGiBMonth": 0.01, "currency": "EUR"}])
    try:
        price = storage_price("s3://prod")
    finally:
        prices_of_context.reset(token)

    assert price is not None
    assert (price.per_gib_month, price.currency) == (0.01, "EUR")


def test_a_context_that_is_added_can_be_read(config: Path) -> None:
    context = Context("a", "b:1", "/etc/x", "s3://a", {"region": "y"}, "aiven", {"private-key": "/k.pem"})

    add_context(context, replace=False)

    assert contexts().by_name == {"a": context}


def test_a_key_itself_is_no_name_of_its_file(config: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nhunter2"

    with pytest.raises(TieredctlError, match="cannot be added") as refused:
        add_context(Context("a", store="s3://a", layout_options={"private-key": key}), replace=False)

    assert "hunter2" not in refused.value.message
