"""`support-bundle`: what is inside is in its manifest, what could not be had is named, and no secret is in it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pexpect
import pytest

from tests.cli.command_line import SECONDS, Tieredctl, environment, own_process
from tests.cli.secret_spellings import SPELLINGS
from tests.cli.unpacked_bundle import SECRET, SEGMENT, bundled, manifest, unpacked
from tieredctl.process import crash_file

pytestmark = pytest.mark.usefixtures("own_state")


NO_RESULT = "is not the result of a scan or a verification."


@pytest.fixture
def source(captures: Path) -> tuple[str, ...]:
    return ("--log-dir", str(captures / "kafka-4.3.1/data"), "--segment-id", SEGMENT)


def test_it_has_what_the_commands_say_and_a_manifest_of_it(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    """For its owner alone, and the same each time."""
    to, again = tmp_path / "bundle.tar.gz", tmp_path / "again.tar.gz"
    outcome = bundled(tieredctl, to, *source, "-o", "json")
    bundled(tieredctl, again, *source)
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
    assert (to.read_bytes(), stat.S_IMODE(to.stat().st_mode)) == (again.read_bytes(), 0o600)


def test_what_cannot_be_had_is_named_and_the_rest_is_there(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    """A folder of earlier results, file by file."""
    to, missing, unknown = tmp_path / "bundle.tar.gz", tmp_path / "missing.json", "A" * 21 + "w"
    results, empty = tmp_path / "results", tmp_path / "empty"
    for folder in (results, empty):
        folder.mkdir()
    for name in ("scan.json", "verify.prom", "notes.txt"):
        (results / name).write_text(name)
    given = [word for path in (results, empty, missing) for word in ("--result", path)]

    outcome = bundled(tieredctl, to, *source, "--segment-id", unknown, *given)

    problems = {item["name"]: item["problem"] for item in manifest(to)["items"] if item["problem"]}
    assert outcome.exit_code == 5
    assert f"history/{SEGMENT}.json" in unpacked(to)
    assert {name: problem for name, problem in problems.items() if name.startswith("results/")} == {
        "results/0-scan.json": f"{results / 'scan.json'} {NO_RESULT}",
        "results/1-verify.prom": f"{results / 'verify.prom'} {NO_RESULT}",
        "results/2-empty": f"{empty} cannot be read: Is a directory.",
        "results/3-missing.json": f"{missing} cannot be read: No such file or directory.",
    }


def test_nothing_is_replaced_without_force(tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path) -> None:
    """Or where what was asked for excludes each other."""
    to = tmp_path / "bundle.tar.gz"
    to.write_text("mine")

    refused = bundled(tieredctl, to)
    two_sources = bundled(tieredctl, to, *source, "--bootstrap-server", "127.0.0.1:1", "--force")

    assert (refused.exit_code, two_sources.exit_code, two_sources.out, to.read_text()) == (1, 2, "", "mine")
    assert bundled(tieredctl, to, "--force").exit_code == 0
    assert "versions.json" in unpacked(to)


def test_where_it_cannot_be_written_is_noticed_before_anything_is_read(
    tieredctl: Tieredctl, source: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    places = ("missing/bundle.tar.gz", "missing/", "folder", "folder/", "file/bundle.tar.gz", "pipe")
    for place in (*(f"{tmp_path}/{name}" for name in places), "/proc/bundle.tar.gz"):
        outcome = bundled(tieredctl, place, *source, "--force")

        assert outcome.exit_code in (1, 2), place
        assert (outcome.out, "Gathered" in outcome.err, place.rstrip("/") in outcome.err) == ("", False, True), place
    assert sorted(tmp_path.rglob("*")) == before


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
    """Whatever the output; what it lacks is told."""
    missing, printed = tmp_path / "missing.json", tmp_path / "printed.tar.gz"

    done = run_to_stdout(tmp_path, *source, "-o", "json", "--result", missing)

    printed.write_bytes(done.stdout)
    assert done.returncode == 5, done.stderr
    assert f"results/0-missing.json: {missing} cannot be read: No such file or directory." in done.stderr.decode()
    assert f"history/{SEGMENT}.json" in unpacked(printed)
    assert set(unpacked(printed)) <= {"manifest.json", *(item["name"] for item in manifest(printed)["items"])}
    assert not (tmp_path / "-").exists()


def test_a_bundle_is_not_written_to_a_terminal(source: tuple[str, ...]) -> None:
    words = ["-m", "tieredctl", "support-bundle", "--to", "-", *source]
    terminal = pexpect.spawn(sys.executable, words, env=environment(), timeout=SECONDS, encoding="utf-8")
    terminal.expect(pexpect.EOF)
    terminal.close()
    shown = str(terminal.before)

    assert terminal.exitstatus == 2
    assert ("A bundle is not written to a terminal." in shown, "Gathered" in shown) == (True, False)


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
    crash_file.write_crash_file(ValueError(f"password={SECRET}"), ["tieredctl", "x", "--token", SECRET])

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

    assert (outcome.exit_code, NO_RESULT in outcome.out) == (5, True), outcome.err
    assert SECRET.encode() not in unpacked(to)["results/0-result"]
    assert b"(hidden)" in unpacked(to)["results/0-result"]


def test_no_secret_is_in_it_however_it_is_spelled(
    tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "result.txt"
    secret = 'correct horse+batt/ery="é"'
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    for spelled in SPELLINGS:
        result.write_text(f"asked with {spelled(secret)} at noon\n")

        bundled(tieredctl, to, "--result", result, "--force")

        assert spelled(secret).encode() not in unpacked(to)["results/0-result.txt"], spelled.__name__
        assert b"at noon" in unpacked(to)["results/0-result.txt"], spelled.__name__
