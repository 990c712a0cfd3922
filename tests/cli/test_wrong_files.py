"""A file of another kind, where a command takes one: exit 2, as for any wrong argument. Exit 4 means data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.command_tree import commands
from tests.cli.crashed_cluster import AGED, CLUSTER_ID, ENOUGH, CrashedClusterOnDisk
from tests.cli.test_lost_inputs import LOG, OF_METADATA, OF_STORES, TOPIC_ID, copied, run
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tieredctl.errors import ExitCode

STORE = ("--store", "file:{store}", "--layout", "local")
IN_S3 = ("--store", f"s3://{BUCKET}/inventoried", "--store-option", "endpoint={s3}", "--layout", "aiven")
OFFLINE = ("--offline-metadata", *LOG)
APPLIED = ("{folder}/made.plan", "--offline-metadata", "--yes", "--cluster-id", CLUSTER_ID)
RESTORED = ("--from", "file:{folder}", *STORE, "--node", "1={folder}/restored")
GIVEN: Mapping[str, tuple[str, ...]] = {
    **OF_METADATA,
    **OF_STORES,
    "topic list": LOG,
    "topic status": ("orders7", *LOG),
    "partition remove": (TOPIC_ID, "--even-if-live", *LOG, *STORE),
    **{f"diskless {verb}": () for verb in ("inspect", "orphans show", "orphans apply", "orphans restore")},
    "diskless explain": ("orders7:0@5", "--control-plane", "postgresql://127.0.0.1:1/none"),
    "pipeline run": (*LOG, *STORE, "--tables", "{folder}/tables"),
    "backup run": ("--bootstrap-server", "127.0.0.1:1", "--to", "file:{folder}/sets"),
    "backup verify": ("--from", "file:{folder}"),
    **{f"restore {verb}": RESTORED for verb in ("plan", "apply")},
    "orphans show": (),
    "orphans apply": OFFLINE,
    "orphans restore": (),
    "store inspect": (),
    "doctor config": (),
    "estimate wal-cost": (),
    "recover log-starts": ("--log-dir", "{folder}/node"),
    "snapshot clean": ("{data}",),
    "snapshot compare": ("{folder}/wrong",),
    **{f"snapshot {verb}": () for verb in ("inspect", "ls", "verify")},
    "wal clean": (*OFFLINE, *STORE[:2]),
    "wal purge": ("--older-than", "14d", *OFFLINE, *STORE[:2]),
}
"""What a command is given besides the wrong file."""
OTHERWISE: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{
        ("orphans apply", one): (*APPLIED, "--log-dir", "{crashed}") for one in ("--live-topic-ids", "--kraft-snapshot")
    },
    ("orphans apply", "--export"): APPLIED,
    ("orphans scan", "--inventory"): (*LOG, *IN_S3),
    ("orphans plan", "--inventory"): ("--to", "{folder}/planned", *LOG, *IN_S3),
    ("recover indexes", "--verified"): (*LOG, *STORE),
    ("heal", "--result"): (*LOG, *STORE),
    ("remote records", "--schema"): ("orders", "--value", "avro", *LOG, *STORE),
}
"""The same, where an option needs other words than the rest of its command."""
ARGUMENTS = {"PATH...", "PLAN", "RECEIPTS", "FILE", "KEY|FILE"}
OPTIONS = {
    *("--export", "--as-of", "--live-topic-ids", "--kraft-snapshot", "--key-list", "--inventory", "--resume", "--from"),
    *("--result", "--verified", "--price-file", "--schema", "--server-properties", "--recipient", "--identity"),
}
MADE_WHERE_EMPTY = "--resume"
NOT_REFUSED = {"exporter", "context show", "support-bundle"}
"""The first serves until it is ended, while others write what it reads; the second reads nothing that it shows; and a
bundle has all that could be had, with what is wrong with the rest (exit 5)."""
WRITTEN = {"--to", "--receipts", "--report", "--metrics-file"}
OF_CLIENTS = {"--command-config", "--controller-config"}
NAMED = re.compile(r"wrong|list of topic ids")
"""What the sentence is about: it is this file that is refused, and not another word of the line."""
INSTEAD_OF_LOGS = {"--export"}
BESIDE_LOGS = {"wal upload"}
"""Reads local logs, with the metadata besides."""


@pytest.fixture
def places(
    captures: Path, tmp_path: Path, prices: None, moto: ObjectServer, cluster: CrashedClusterOnDisk
) -> Mapping[str, str]:
    """A cluster, a bucket, and a plan that could be applied to another one."""
    made = copied(captures, tmp_path / "cluster")
    assert cluster.plan(*AGED, *ENOUGH).exit_code == ExitCode.CLEAN
    cluster.plan_file.rename(tmp_path / "cluster" / "made.plan")
    return {**made, "crashed": str(cluster.log_dir), "s3": str(S3Bucket(moto.endpoint).options["endpoint"])}


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("prices:\n- {store: 'file:', perGiBMonth: 0.5, currency: USD}\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))


def taken() -> Iterator[tuple[str, str]]:
    """Each command with each option by which it reads a file; "" for an argument."""
    for words, command in commands():
        for one in command.params:
            metavar = one.metavar or ""
            name = "" if one.param_type_name == "argument" else max(one.opts, key=len)
            if metavar == "URL":
                continue
            if name in OPTIONS or (not name and metavar in ARGUMENTS and words != ("metadata", "export")):
                yield " ".join(words), name
            elif name and ("FILE" in metavar or metavar == "PLAN"):
                assert name in WRITTEN | OF_CLIENTS, (words, name)


def words_of(command: str, option: str) -> tuple[str, ...]:
    """What goes with a wrong file."""
    given = OTHERWISE.get((command, option), GIVEN.get(command, ()))
    if option not in INSTEAD_OF_LOGS or command in BESIDE_LOGS or LOG[0] not in given:
        return given
    at = given.index(LOG[0])
    return given[:at] + given[at + len(LOG) :]


WRONG = {
    "text": b"this is another kind of file\n" * 3,
    "bytes": bytes(range(256)) * 16,
    "zeros": b"\0" * 4096,
    "empty": b"",
}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(content, id=name, marks=() if name in ("text", "empty") else pytest.mark.exhaustive)
        for name, content in WRONG.items()
    ],
)
def test_a_file_of_another_kind_is_a_wrong_argument(places: Mapping[str, str], content: bytes) -> None:
    wrong = Path(places["folder"]) / "wrong"

    wrongly = []
    for command, option in taken():
        if command in NOT_REFUSED or (option == MADE_WHERE_EMPTY and not content):
            continue
        wrong.write_bytes(content)

        outcome = run(command, (*words_of(command, option), *([option] if option else []), "{folder}/wrong"), places)

        is_refused = outcome.exit_code == ExitCode.USAGE and NAMED.search(outcome.err)
        if not is_refused or wrong.read_bytes() != content:
            wrongly.append(f"{outcome.exit_code} of {command} {option}: {outcome.err}")
    assert not wrongly, "\n".join(wrongly)


def test_a_bundle_names_the_files_of_another_kind_in_it(places: Mapping[str, str]) -> None:
    wrong = Path(places["folder"]) / "wrong"

    for content in WRONG.values():
        for option in ("--export", "--result"):
            wrong.write_bytes(content)

            outcome = run("support-bundle", ("--to", "{folder}/bundle", "--force", option, "{folder}/wrong"), places)

            assert outcome.exit_code == ExitCode.INCOMPLETE, (option, content)
            assert str(wrong) in outcome.out, (option, content)
