"""`metadata format` prints what Kafka's RemoteLogMetadataFormatter printed of the same topics, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tieredctl.cli.main import run

KAFKA_4 = ("kafka-4.3.1", "aiven-plain-4.3.1", "aiven-crash-4.3.1", "aiven-zstd-encrypted-4.3.1")


def printed(capture: Path, metadata_partition: int) -> bytes:
    return (capture / "oracle" / "formatter" / f"{metadata_partition}.txt").read_bytes()


def test_as_kafka_4_and_3_9_print(captures: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    releases = {**dict.fromkeys(KAFKA_4, ""), "kafka-3.9.1": "--kafka-version 3.9"}
    for (name, version), metadata_partition in product(releases.items(), range(4)):
        capture = captures / name
        words = ["--metadata-partition", str(metadata_partition), *version.split()]

        code = run(["metadata", "format", "--log-dir", str(capture / "data"), *words])

        assert code == 0, (name, metadata_partition)
        assert capfdbinary.readouterr() == (printed(capture, metadata_partition), b""), (name, metadata_partition)


def test_as_kafka_3_5_prints(captures: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """3.4.1 wrote these; its manager printed them as it polled them, so their order among partitions is its own."""
    capture = captures / "rlmm-3.4.1"

    code = run(["metadata", "format", "--log-dir", str(capture / "data"), "--kafka-version", "3.5"])

    out, err = capfdbinary.readouterr()
    expected = (capture / "formatter.txt").read_bytes().splitlines()
    assert (code, err) == (0, b"")
    assert sorted(out.splitlines()) == sorted(expected)
    for metadata_partition in range(4):
        mark = f"partition: {metadata_partition}, ".encode()
        assert _starting_with(mark, out.splitlines()) == _starting_with(mark, expected)


def _starting_with(mark: bytes, lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line.startswith(mark)]


def test_without_a_metadata_partition_all_are_printed_in_turn(
    captures: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    capture = captures / "kafka-4.3.1"

    run(["metadata", "format", "--log-dir", str(capture / "data")])

    assert capfdbinary.readouterr().out == b"".join(printed(capture, number) for number in range(4))


def test_the_process_prints_it_too(captures: Path) -> None:
    capture = captures / "kafka-4.3.1"

    completed = subprocess.run(
        [sys.executable, "-m", "tieredctl", "metadata", "format", "--log-dir", str(capture / "data")],
        capture_output=True,
        check=True,
    )

    assert completed.stdout == b"".join(printed(capture, number) for number in range(4))
    assert completed.stderr == b""
