"""The files and statements that pages show are what tieredctl takes, and what its tests give to a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, own_process, this_process
from tests.documentation.pages import blocks
from tests.rigs import inkless, inkless_rlmm

DOCS = REPOSITORY / "docs"


def only_block(page: str, language: str) -> str:
    (block,) = (text for _, one, text in blocks(DOCS / page) if one == language)
    return block


@pytest.fixture
def configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.yaml"
    file.touch(mode=0o600)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(file))
    return file


def test_the_files_of_contexts_are_taken(configuration_file: Path) -> None:
    of_its_own, configuration = (text for _, one, text in blocks(DOCS / "contexts.md") if one == "yaml")
    configuration_file.write_text(configuration, encoding="utf-8")
    folder = configuration_file.parent / "contexts.d"
    folder.mkdir()
    (folder / "prod.yaml").write_text(of_its_own, encoding="utf-8")

    current, prod = own_process("context", "show"), own_process("context", "show", "prod")

    assert (current.exit_code, prod.exit_code) == (0, 0), current.err + prod.err
    assert "s3://staging/kafka" in current.out.split()
    assert {"s3://archive/kafka", "private-key=/home/me/kafka/rsm.pem"} <= set(prod.out.split())


def test_the_prices_are_taken(captures: Path, configuration_file: Path) -> None:
    prices = only_block("removing.md", "yaml").replace("s3://archive/", "file:")
    configuration_file.write_text(prices, encoding="utf-8")
    cluster = captures / "kafka-4.3.1"
    store = f"file:{cluster / 'remote' / 'kafka-tiered-storage'}"

    assert "USD a month" in this_process("estimate", "cost", "--store", store, "--log-dir", cluster / "data").err


def test_the_price_file_of_wal_tiering_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(only_block("wal.md", "yaml"), encoding="utf-8")

    assert this_process("estimate", "wal-cost", "--price-file", file).exit_code == 0


def test_the_rights_on_the_control_plane_are_those_of_the_tests() -> None:
    shown = [" ".join(text.split()) for _, language, text in blocks(DOCS / "diskless.md") if language == "sql"]

    for grant in (*inkless.GRANTS, *inkless_rlmm.GRANTS):
        assert any(f"{' '.join(grant.split())};" in statements for statements in shown), grant
