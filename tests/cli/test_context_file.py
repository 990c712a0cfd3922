"""Contexts in the configuration file, which is never changed, and in files of their own: what they may have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment
from tieredctl.config.context_changes import add_context
from tieredctl.config.contexts import Context, contexts
from tieredctl.config.file import prices_of_context, storage_price
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


SECRET = [
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
]


def test_a_file_that_cannot_be_used_is_a_sentence_without_its_secrets(config: Path, tieredctl: Tieredctl) -> None:
    for text in (*HOSTILE.values(), *SECRET):
        config.write_text(text)

        outcome = tieredctl("topic", "list")
        assert (outcome.exit_code, outcome.out) == (2, ""), text[:80]
        assert outcome.err.startswith(f"tieredctl: {config} cannot be used: "), text[:80]
        assert (outcome.err.count("\n"), "hunter2" in outcome.err) == (2, False), text[:80]
        for verb in ("show", "list") if text in SECRET else ():
            outcome = tieredctl("context", verb)
            assert (outcome.exit_code, "hunter2" in outcome.out + outcome.err) == (2, False), text


def test_a_file_that_everybody_may_write_is_refused(config: Path, tieredctl: Tieredctl) -> None:
    config.write_text(WRITTEN)
    config.chmod(0o666)

    assert tieredctl("context", "list").exit_code == 2


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_not_a_file_is_neither_waited_for_nor_replaced(
    make: Callable[[Path], None], config: Path, tieredctl: Tieredctl
) -> None:
    make(config)

    assert tieredctl("context", "list").exit_code == 2
    assert tieredctl("context", "add", "archive", "--store", "file:/archive").exit_code == 1
    assert [path.name for path in config.parent.iterdir()] == [config.name]


def test_a_device_is_not_replaced_by_a_file(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    """It is only tried: where it would be, the machine that runs this test would lose it."""
    monkeypatch.setenv("TIEREDCTL_CONFIG", os.devnull)

    for words in (("add", "archive", "--store", "file:/archive"), ("remove", "archive"), ("use", "archive")):
        outcome = tieredctl("context", *words, "--dry-run")

        assert (outcome.exit_code, outcome.out) == (1, ""), words


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


def test_a_document_that_is_marked_as_one_stays_one(config: Path, tieredctl: Tieredctl) -> None:
    for head in ("---\n", "# mine\n---\n", "%YAML 1.1\n---\n# mine\n"):
        config.write_text(f"{head}contexts:\n  a:\n    store: s3://a\n")

        assert tieredctl("context", "use", "a").exit_code == 0
        assert config.read_text() == f'{head}currentContext: "a"\ncontexts:\n  a:\n    store: s3://a\n'


def test_a_file_written_in_another_way_is_not_changed(config: Path, tieredctl: Tieredctl) -> None:
    config.write_text("{contexts: {a: {store: 's3://a'}}}")

    assert tieredctl("context", "use", "a").exit_code == 2
    assert config.read_text() == "{contexts: {a: {store: 's3://a'}}}"


def test_a_context_is_replaced_only_by_force(config: Path, tieredctl: Tieredctl) -> None:
    words = ("context", "add", "a", "--store")
    assert tieredctl(*words, "s3://first").exit_code == 0

    refused = tieredctl(*words, "s3://second")
    assert (refused.exit_code, contexts().by_name["a"].store) == (2, "s3://first")
    assert tieredctl(*words, "s3://second", "--force").exit_code == 0
    assert contexts().by_name["a"].store == "s3://second"


def test_what_the_file_may_not_have_is_not_added(config: Path, tieredctl: Tieredctl) -> None:
    for words in (
        ("a b", "--store", "s3://x"),
        ("", "--store", "s3://x"),
        ("a",),
        ("a", "--store", "s3://x", "--store-option", "secret-access-key=hunter2"),
        ("a", "--store", "s3://user:hunter2@x"),
        ("a", "--store", "s3://x", "--store-option", "endpoint=https://user:hunter2@minio:9000"),
        ("a", "--bootstrap-server", "here"),
        ("a", "--layout", "aiven"),
        *(("a", "--store", unknown) for unknown in ("s4://bucket", "/var/lib/tiered", "bucket")),
    ):
        outcome = tieredctl("context", "add", *words)

        assert (outcome.exit_code, "hunter2" in outcome.err, config.exists()) == (2, False, False), words


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


def test_prices_of_a_context_go_before_those_of_the_file(config: Path) -> None:
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
