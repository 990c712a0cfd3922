"""What is typed wrong is refused before anything is looked at: a sentence, a hint, exit 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import copied, write_events

DIGITS = "9" * 5000
DASHED_ID = "-x-aw3fEQIi3do0H9Y7cKQ"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with one segment of t-0."""
    write_events(tmp_path, *copied(1, 0, 9))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("segments", "--topic-id", "short"), "'short' is not a Kafka id."),
        (("segments", "--segment-id", ""), "'' is not a Kafka id."),
        (("history", "AAAA"), "'AAAA' is not a Kafka id."),
        (("segments", "--partition", "2147483648"), "'2147483648' is not a value of --partition."),
        (
            ("lookup", "t:0", "--epoch", "0", "--offset", "9223372036854775808"),
            "'9223372036854775808' is not a value of",
        ),
        (("lookup", "t:0", "--epoch", "2147483648", "--offset", "0"), "'2147483648' is not a value of --epoch."),
        (("lookup", "t:2147483648", "--epoch", "0", "--offset", "0"), "'t:2147483648' is not TOPIC:PARTITION."),
        (("lookup", f"t:{DIGITS}", "--epoch", "0", "--offset", "0"), f"'t:{DIGITS}' is not TOPIC:PARTITION."),
        (("stuck", "--older-than", f"{DIGITS}d"), f"'{DIGITS}d' is not a duration."),
        (("stuck", "--now", DIGITS), f"'{DIGITS}' is not a time."),
        (("segments", "--as-of", "/no/such"), "'/no/such' is neither a time nor a file."),
        (("segments", "--as-of", DIGITS), f"'{DIGITS}' is neither a time nor a file."),
        (("segments", "--export", ""), "An empty text is not a path."),
        (("format", "--property", "print.partition=true"), "--property is for --style kip405."),
        (("segments", "--command-config", "/no"), "--command-config is for --bootstrap-server."),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_value_that_cannot_be_is_refused(
    words: tuple[str, ...], sentence: str, log_dir: Path, tieredctl: Tieredctl
) -> None:
    source = () if "--export" in words else ("--log-dir", log_dir)

    outcome = tieredctl("metadata", *words, *source)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: {sentence}")
    assert outcome.err.count("\n") == 2


def test_a_path_from_a_variable_that_is_not_set_is_not_the_current_folder(
    log_dir: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_dir)

    outcome = tieredctl("metadata", "segments", "--log-dir", "")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("tieredctl: An empty text is not a path.\n")


@pytest.mark.parametrize(
    "server", ["broker", "broker:", ":9092", "broker:0", "broker:99999", "http://b:1", "a:1,b", ""]
)
def test_a_server_without_a_port_is_refused_at_once(server: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("metadata", "segments", "--bootstrap-server", server)

    assert outcome.exit_code == 2
    assert "is not HOST:PORT.\n" in outcome.err


@pytest.mark.parametrize("selection", [("--topic", "typo"), ("--topic", "t", "--partition", "7")])
def test_of_a_topic_that_the_metadata_never_heard_of_nothing_is_said_not_to_be_stuck(
    selection: tuple[str, ...], log_dir: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("metadata", "stuck", *selection, "--log-dir", log_dir)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: The metadata has no event of topic {selection[1]}")


@pytest.mark.parametrize(
    "words",
    [
        (DASHED_ID, "0"),
        (f"{DASHED_ID}:0",),
        ("--", DASHED_ID, "0"),
        ("-o", "table", DASHED_ID, "0"),
        (DASHED_ID, "--metadata-partitions=50", "0", "-o", "table"),
    ],
)
def test_an_id_may_begin_with_a_dash(words: tuple[str, ...], tieredctl: Tieredctl) -> None:
    assert tieredctl("metadata", "partition-of", *words) == (0, "20\n", "")


def test_beside_an_id_with_a_dash_options_are_still_read(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("metadata", "partition-of", DASHED_ID, "0", "--bogus")

    assert outcome.exit_code == 2
    assert outcome.err.startswith("tieredctl: There is no option --bogus.")


@pytest.mark.parametrize("url", ["file://host/folder", "s3:/x", "foo:bar", "/tmp", ""])
def test_a_store_that_cannot_be_opened_is_refused(url: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", url)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: '{url}' ")
