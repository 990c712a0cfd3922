"""`support-bundle`: what is inside is in its manifest, what could not be had is named, and no secret is in it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.cli.command_line import SECONDS, Outcome, Tieredctl, environment, own_process
from tests.cli.secret_spellings import SPELLINGS
from tieredctl.cli.trouble import crash_file
from tieredctl.cli.trouble.hidden_names import HiddenNames
from tieredctl.model import secrets

SECRET = "correct-horse-battery"
SEGMENT = "zYJ8cWbWS6Wrn_UH97CRKw"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))


@pytest.fixture
def source(captures: Path) -> tuple[str, ...]:
    return ("--log-dir", str(captures / "kafka-4.3.1/data"), "--segment-id", SEGMENT)


def unpacked(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle) as archive:
        return {
            member.name.removeprefix("tieredctl-support/"): archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
        }


def manifest(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(unpacked(bundle)["manifest.json"])
    return document


def bundled(tieredctl: Tieredctl, to: str | Path, *words: str | Path) -> Outcome:
    return tieredctl("support-bundle", "--to", to, *words)


def test_it_has_what_the_commands_say_and_a_manifest_of_it(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    to = tmp_path / "bundle.tar.gz"
    outcome = bundled(tieredctl, to, *source, "-o", "json")
    inside = unpacked(to)

    assert outcome.exit_code == 0
    assert outcome.document()["items"] == manifest(to)["items"]
    assert set(inside) == {
        *("manifest.json", "versions.json", "context.json", "metadata-stats.json", "metadata-stuck.json"),
        f"history/{SEGMENT}.json",
    }
    for item in manifest(to)["items"]:
        data = inside[item["name"]]
        assert (item["bytes"], item["sha256"], item["problem"]) == (len(data), sha256(data).hexdigest(), None)
    asked = tieredctl("metadata", "history", SEGMENT, *source[:2], "-o", "json")
    assert json.loads(inside[f"history/{SEGMENT}.json"]) == asked.document()


def test_it_is_for_its_owner_alone_and_the_same_each_time(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    for to in (first, second):
        bundled(tieredctl, to, *source)
    assert first.read_bytes() == second.read_bytes()
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


def test_what_cannot_be_had_is_named_and_the_rest_is_there(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    to, missing, unknown = tmp_path / "bundle.tar.gz", tmp_path / "missing.json", "A" * 21 + "w"
    outcome = bundled(tieredctl, to, *source, "--segment-id", unknown, "--result", missing)

    problems = {item["name"]: item["problem"] for item in manifest(to)["items"] if item["problem"]}
    assert outcome.exit_code == 5
    assert f"history/{SEGMENT}.json" in unpacked(to)
    assert problems["results/0-missing.json"] == f"{missing} cannot be read: No such file or directory."


def test_a_folder_of_earlier_results_is_in_it_file_by_file(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    results, empty, to = tmp_path / "results", tmp_path / "empty", tmp_path / "bundle.tar.gz"
    for folder in (results, empty):
        folder.mkdir()
    for name in ("scan.json", "verify.prom", "notes.txt"):
        (results / name).write_text(name)

    outcome = bundled(tieredctl, to, *source, "--result", results, "--result", empty)

    problems = {item["name"]: item["problem"] for item in manifest(to)["items"]}
    assert outcome.exit_code == 5
    assert {name: problem for name, problem in problems.items() if name.startswith("results/")} == {
        "results/0-scan.json": None,
        "results/1-verify.prom": None,
        "results/2-empty": f"{empty} cannot be read: Is a directory.",
    }


def test_nothing_is_replaced_without_force(tieredctl: Tieredctl, tmp_path: Path) -> None:
    to = tmp_path / "bundle.tar.gz"
    to.write_text("mine")

    refused = bundled(tieredctl, to)
    assert (refused.exit_code, refused.err) == (
        1,
        f"tieredctl: {to} already exists.\n  Give --force to replace it.\n",
    )
    assert to.read_text() == "mine"

    assert bundled(tieredctl, to, "--force").exit_code == 0
    assert "versions.json" in unpacked(to)


@pytest.mark.parametrize(
    "place", ["missing/bundle.tar.gz", "missing/", "folder", "folder/", "file/bundle.tar.gz", "pipe"]
)
def test_where_it_cannot_be_written_is_noticed_before_anything_is_read(
    place: str, tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))

    outcome = bundled(tieredctl, f"{tmp_path}/{place}", *source, "--force")

    assert outcome.exit_code in (1, 2)
    assert (outcome.out, "Gathered" in outcome.err, "Traceback" in outcome.err) == ("", False, False)
    assert place.rstrip("/") in outcome.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_takes_no_file_is_noticed_before_anything_is_read(
    tieredctl: Tieredctl, source: tuple[str, ...]
) -> None:
    outcome = bundled(tieredctl, "/proc/bundle.tar.gz", *source)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith("tieredctl: /proc/bundle.tar.gz cannot be written: ")


def test_what_excludes_each_other_is_refused_and_nothing_is_written(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    to = tmp_path / "bundle.tar.gz"

    outcome = bundled(tieredctl, to, *source, "--bootstrap-server", "127.0.0.1:1")

    assert (outcome.exit_code, outcome.out, to.exists()) == (2, "", False)
    assert "exclude each other" in outcome.err


def test_what_is_asked_meanwhile_is_shown_and_is_not_a_part_of_the_bundle(tieredctl: Tieredctl, tmp_path: Path) -> None:
    to, impatient = tmp_path / "bundle.tar.gz", tmp_path / "client.properties"
    impatient.write_text("request.timeout.ms=500\n")
    words = ("--bootstrap-server", "127.0.0.1:1", "--command-config", impatient)

    outcome = tieredctl("-v", "support-bundle", "--to", to, *words)

    asked = [line for line in outcome.err.splitlines() if "connect by PLAINTEXT" in line]
    gathered = outcome.err.splitlines().index("Gathered settings.json.")
    assert outcome.err.splitlines().index(asked[-1]) > gathered
    assert all("connect by" not in (item["problem"] or "") for item in manifest(to)["items"])


def test_a_dash_is_standard_output_which_has_the_bundle_alone(source: tuple[str, ...], tmp_path: Path) -> None:
    done = run_to_stdout(tmp_path, *source)
    printed = tmp_path / "printed.tar.gz"
    printed.write_bytes(done.stdout)

    assert done.returncode == 0, done.stderr
    assert f"history/{SEGMENT}.json" in unpacked(printed)
    assert set(unpacked(printed)) == {"manifest.json", *(item["name"] for item in manifest(printed)["items"])}
    assert not (tmp_path / "-").exists()


def test_what_a_bundle_on_standard_output_lacks_is_told(source: tuple[str, ...], tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"

    done = run_to_stdout(tmp_path, *source, "--result", missing)

    assert done.returncode == 5
    assert f"results/0-missing.json: {missing} cannot be read: No such file or directory." in done.stderr.decode()


def test_a_bundle_is_not_written_to_a_terminal(source: tuple[str, ...]) -> None:
    words = ["-m", "tieredctl", "support-bundle", "--to", "-", *source]
    terminal = pexpect.spawn(sys.executable, words, env=environment(), timeout=SECONDS, encoding="utf-8")
    terminal.expect(pexpect.EOF)
    terminal.close()
    shown = str(terminal.before)

    assert terminal.exitstatus == 2
    assert ("A bundle is not written to a terminal." in shown, "Gathered" in shown) == (True, False)


def test_another_output_is_not_mixed_into_a_bundle_on_standard_output(source: tuple[str, ...], tmp_path: Path) -> None:
    done = run_to_stdout(tmp_path, *source, "-o", "json")
    printed = tmp_path / "printed.tar.gz"
    printed.write_bytes(done.stdout)

    assert done.returncode == 0, done.stderr
    assert f"history/{SEGMENT}.json" in unpacked(printed)


def test_a_dry_run_to_standard_output_shows_what_would_be_inside(tieredctl: Tieredctl, source: tuple[str, ...]) -> None:
    outcome = bundled(tieredctl, "-", *source, "--dry-run", "-o", "json")

    assert outcome.exit_code == 0
    assert f"history/{SEGMENT}.json" in {item["name"] for item in outcome.document()["items"]}


def run_to_stdout(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tieredctl", "support-bundle", "--to", "-", *map(str, words)]
    return subprocess.run(command, capture_output=True, cwd=folder, env=environment(), timeout=SECONDS, check=False)


def test_no_secret_is_in_it(captures: Path, tmp_path: Path) -> None:
    to, config, result = tmp_path / "bundle.tar.gz", tmp_path / "client.properties", tmp_path / "result.json"
    config.write_text(f"sasl.password={SECRET}\nsasl.username=user\nrequest.timeout.ms=500\n")
    result.write_text(
        json.dumps({"password": SECRET, "nested": [{"url": f"https://u:{SECRET}@host/?X-Amz-Signature=1"}]})
    )
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    store = ("--store", "s3://bucket", "--store-option", f"endpoint=http://user:{SECRET}@host")
    crash_file.write_crash_file(ValueError(f"password={SECRET}"), ["x", "--token", SECRET])

    words = ("--bootstrap-server", "127.0.0.1:1", "--command-config", config, *store, "--result", result)
    outcome = own_process("support-bundle", "--to", to, *words, AWS_SECRET_ACCESS_KEY=SECRET, **state)

    inside, problems = unpacked(to), {item["name"]: item["problem"] for item in manifest(to)["items"]}
    assert outcome.exit_code == 5, outcome
    assert "connection refused" in problems["doctor.json"]
    assert problems["context.json"] is None
    assert any(name.startswith("crashes/") for name in inside)
    assert json.loads(inside["results/0-result.json"])["password"] == "(hidden)"
    assert SECRET.encode() not in b"".join(inside.values())
    assert SECRET not in outcome.out + outcome.err


def test_topic_names_are_hidden_on_request(tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path) -> None:
    to = tmp_path / "bundle.tar.gz"
    bundled(tieredctl, to, *source, "--hide-names")

    events = json.loads(unpacked(to)[f"history/{SEGMENT}.json"])["items"]
    assert b"orders7" not in b"".join(unpacked(to).values())
    assert {event["topic"].startswith("topic-") for event in events if "topic" in event} == {True}
    assert manifest(to)["topicNamesAreHidden"]


@pytest.mark.parametrize(
    "result",
    [
        json.dumps({"settings": [{"name": "sasl.password", "value": SECRET}]}),
        json.dumps({"settings": {"sasl.password": {"value": SECRET, "source": "DYNAMIC_BROKER_CONFIG"}}}),
        json.dumps({"passwords": ["x", SECRET]}),
        json.dumps({"headers": {"Authorization": SECRET}}),
        json.dumps([[f"password={SECRET}"] * 2] * 2),
        f"sasl.username=user\n  sasl.password=a;b {SECRET}\n",
        f"- password: two {SECRET}\n",
        f'required \\\n user_alice="{SECRET}";\n',
        f"nothing but {SECRET} of the environment\n",
        "[" * 800 + f'"password={SECRET}"' + "]" * 800,
    ],
    ids=["named", "nested", "listed", "header", "string", "properties", "yaml", "jaas", "environment", "deep"],
)
def test_no_secret_of_an_earlier_result_is_in_it(
    result: str, tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, file = tmp_path / "bundle.tar.gz", tmp_path / "result"
    file.write_text(result)
    if "environment" in result:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    outcome = bundled(tieredctl, to, "--result", file)

    assert outcome.exit_code == 0, outcome.err
    assert SECRET.encode() not in unpacked(to)["results/0-result"]
    assert b"(hidden)" in unpacked(to)["results/0-result"]


def test_topic_names_are_hidden_in_lines_too_and_plain_text_is_left_out_since_any_word_may_be_one(
    tieredctl: Tieredctl, tmp_path: Path
) -> None:
    to, result, metrics = tmp_path / "bundle.tar.gz", tmp_path / "scan.jsonl", tmp_path / "scan.prom"
    lines = [{"kind": "Scan"}, {"topic": "payments7", "key": "x/payments7-id/0", "password": SECRET}]
    result.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    metrics.write_text('tieredctl_remote_bytes{topic="invoices7"} 1\n')
    crash_file.write_crash_file(ValueError("payments7"), ["topic", "status", "other7"])

    outcome = bundled(tieredctl, to, "--result", result, "--result", metrics, "--hide-names")

    inside = b"".join(unpacked(to).values())
    assert outcome.exit_code == 0
    assert [one for one in (b"payments7", b"other7", b"invoices7", SECRET.encode()) if one in inside] == []
    assert len(unpacked(to)["results/0-scan.jsonl"].splitlines()) == 2
    left_out = {item["name"].partition("/")[0]: item["problem"] for item in manifest(to)["items"] if item["problem"]}
    why = "Left out because of --hide-names: it is plain text, in which any word may be the name of a topic."
    assert left_out == {"crashes": why, "results": why}


@pytest.mark.parametrize(
    "named",
    [
        {"key": "prod/secret.orders-G4i52LJdRBel-FDnehx_Kw/3/00000000000000000044-iKEAjo4YQFCacBhyCX3_1g.log"},
        {"key": "secret.orders-3-G4i52LJdRBel-FDnehx_Kw/00000000000000000044-iKEAjo4YQFCacBhyCX3_1g.log"},
        {"path": "/var/kafka/secret.orders-3/leader-epoch-checkpoint", "error": "secret.orders-3 is damaged"},
        {"secret.orders-3": 5},
        {"type": "TopicRecord", "data": {"name": "secret.orders", "topicId": "G4i52LJdRBel-FDnehx_Kw"}},
        {"data": {"resourceType": 2, "resourceName": "secret.orders", "name": "retention.ms", "value": "5"}},
    ],
    ids=["aiven", "local", "path", "member", "topic record", "config record"],
)
def test_topics_that_only_a_key_or_a_path_names_are_hidden(
    named: dict[str, Any], tieredctl: Tieredctl, tmp_path: Path
) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "result.json"
    segment = "iKEAjo4YQFCacBhyCX3_1g"
    result.write_text(json.dumps({"items": [named, {"segmentId": segment, "topicId": "G4i52LJdRBel-FDnehx_Kw"}]}))

    bundled(tieredctl, to, "--result", result, "--hide-names")

    inside = unpacked(to)["results/0-result.json"]
    assert (b"secret" in inside, segment.encode() in inside, b"G4i52LJdRBel-FDnehx_Kw" in inside) == (False, True, True)


def test_topics_of_the_metadata_are_hidden_wherever_they_appear(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "keys.json"
    result.write_text(
        json.dumps({"keys": ["prod/orders7-ID/0/x.log", "orders7", "myorders7", {"orders7": "orders7-0"}]})
    )

    bundled(tieredctl, to, "--log-dir", captures / "kafka-4.3.1/data", "--result", result, "--hide-names")

    key, name, other, by_name = json.loads(unpacked(to)["results/0-keys.json"])["keys"]
    assert key == f"prod/{name}-ID/0/x.log"
    assert (name.startswith("topic-"), other) == (True, "myorders7")
    assert by_name == {name: f"{name}-0"}


@pytest.mark.parametrize(
    ("names", "text", "hidden"),
    [
        ({"a-b", "a"}, "a-b-0 a-0 a-b.c b-a", {"a-b": "B", "a": "A"}),
        ({"orders"}, "orders orders.x preorders orders_2 [orders] orders:0", {"orders": "O"}),
        ({"-a", "a--b"}, "x--a a--b-1", {"-a": "D", "a--b": "E"}),
        ({'odd "one"', "one"}, 'an odd "one" and one', {'odd "one"': "O", "one": "N"}),
        (set(), "a-b", {}),
    ],
)
def test_names_are_found_as_words_and_the_longest_first(names: set[str], text: str, hidden: dict[str, str]) -> None:
    expected = {
        "a-b-0 a-0 a-b.c b-a": "B-0 A-0 A-b.c b-A",
        "orders orders.x preorders orders_2 [orders] orders:0": "O orders.x preorders orders_2 [O] O:0",
        "x--a a--b-1": "x-D E-1",
        'an odd "one" and one': "an O and N",
        "a-b": "a-b",
    }
    found = HiddenNames(names)

    result = found.in_text(text)

    for name, letter in hidden.items():
        result = result.replace(found.in_text(name), letter)
    assert result == expected[text]


@pytest.mark.parametrize("spelled", SPELLINGS, ids=lambda spelling: spelling.__name__)
def test_no_secret_is_in_it_however_it_is_spelled(
    spelled: Callable[[str], str], tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "result.txt"
    secret = 'correct horse+batt/ery="é"'
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    result.write_text(f"asked with {spelled(secret)} at noon\n")

    bundled(tieredctl, to, "--result", result)

    assert spelled(secret).encode() not in unpacked(to)["results/0-result.txt"]
    assert b"at noon" in unpacked(to)["results/0-result.txt"]
