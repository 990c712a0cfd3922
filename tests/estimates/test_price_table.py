"""What storing costs, by the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refusals import refused_with
from tieredctl.config.file import storage_price
from tieredctl.model.list_prices import list_price
from tieredctl.model.prices import StoragePrice

TABLE = """
prices:
  - {store: "s3://", perGiBMonth: 0.023, currency: USD}
  - {store: "s3://archive/", perGiBMonth: 0.004, currency: USD}
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(TABLE)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(file))
    return file


@pytest.mark.usefixtures("configured")
def test_the_longest_beginning_of_the_url_decides() -> None:
    assert storage_price("s3://archive/kafka") == StoragePrice(0.004, "USD")
    assert storage_price("s3://archives/kafka") == StoragePrice(0.023, "USD")
    assert storage_price("gs://bucket") is None


def test_requests_may_have_prices_too(configured: Path) -> None:
    without = storage_price("s3://bucket")
    line = '{store: "s3://", perGiBMonth: 0.023, currency: USD, perThousandPuts: 0.005, perThousandGets: 0.0004}'
    configured.write_text(f"prices:\n  - {line}\n")

    price = storage_price("s3://bucket")

    assert price == StoragePrice(0.023, "USD", 0.005, 0.0004)
    assert (price.puts_cost(1_000_000), price.gets_cost(1_000_000)) == (5.0, 0.4)
    assert without is not None
    assert (without.puts_cost(10), without.gets_cost(10)) == (None, None)


def test_the_file_in_the_users_folder_is_read_and_without_one_there_are_no_prices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIEREDCTL_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert storage_price("s3://bucket") is None

    (tmp_path / "tieredctl").mkdir()
    (tmp_path / "tieredctl/config.yaml").write_text(TABLE)

    assert storage_price("s3://bucket") == StoragePrice(0.023, "USD")


def test_a_file_that_was_named_has_to_be_there(configured: Path) -> None:
    configured.unlink()

    with refused_with("bad-config"):
        storage_price("s3://bucket")


def entries(*lines: str) -> str:
    return "prices:\n" + "".join(f"  - {{{line}, currency: USD}}\n" for line in lines)


def test_a_storage_class_may_have_a_price_of_its_own(configured: Path) -> None:
    configured.write_text(
        entries(
            'store: "s3://", perGiBMonth: 0.023',
            'store: "s3://", storageClass: GLACIER, perGiBMonth: 0.0036',
            'store: "s3://kept/", storageClass: GLACIER, perGiBMonth: 0.004',
        )
    )
    everywhere, kept = storage_price("s3://bucket"), storage_price("s3://kept/kafka")
    stored = {"": 1000 << 30, "GLACIER": 1000 << 30}

    assert everywhere is not None
    assert kept is not None
    assert everywhere.monthly_cost(1000 << 30) == 23.0
    assert (everywhere.monthly_cost_of(stored), kept.monthly_cost_of(stored)) == (26.6, 27.0)


def test_a_class_without_a_price_costs_what_the_store_does_and_is_named(configured: Path) -> None:
    configured.write_text(
        entries('store: "s3://", perGiBMonth: 0.023', 'store: "s3://", storageClass: GLACIER, perGiBMonth: 0.0036')
    )
    price = storage_price("s3://bucket")

    assert price is not None
    assert price.monthly_cost_of({"DEEP_ARCHIVE": 1000 << 30}) == 23.0
    assert price.without_price(["", "STANDARD", "GLACIER", "STANDARD_IA", "DEEP_ARCHIVE"]) == [
        "DEEP_ARCHIVE",
        "STANDARD_IA",
    ]


def of_s3(*more: str) -> str:
    return entries(*(f'store: "s3://", {fields}' for fields in more))


UNUSABLE = (
    of_s3("storageClass: GLACIER, perGiBMonth: 1"),
    of_s3("perGiBMonth: 1") + '  - {store: "s3://", storageClass: A, perGiBMonth: 1, currency: EUR}',
    of_s3("perGiBMonth: 1", 'storageClass: "", perGiBMonth: 1'),
    of_s3("perGiBMonth: 1", "storageClass: 3, perGiBMonth: 1"),
    of_s3("perGiBMonth: 1", "storageClass: A, perGiBMonth: 1, perThousandGets: 1"),
    "prices: 3",
    "prices: [3]",
    "prices: [{store: s3, perGiBMonth: 0.1}]",
    "prices: [{store: s3, perGiBMonth: -1, currency: USD}]",
    "prices: [{store: s3, perGiBMonth: .inf, currency: USD}]",
    "prices: [{store: s3, perGiBMonth: true, currency: USD}]",
    "prices: [{store: 3, perGiBMonth: 1, currency: USD}]",
    "pries: []",
    "- prices",
    "prices: [",
    "\x00",
    "x" * (1 << 20) + "x",
)


def test_a_file_that_cannot_be_used_is_refused(configured: Path) -> None:
    for text in UNUSABLE:
        configured.write_text(text)
        with refused_with("bad-config", text[:200]):
            storage_price("s3://bucket")


def test_a_month_costs_by_the_gib() -> None:
    assert StoragePrice(0.023, "USD").monthly_cost(1000 << 30) == 23.0


def test_clouds_have_list_prices_and_other_stores_none() -> None:
    listed = {url: list_price(url) for url in ("s3://a/b", "gs://a", "az://a/b", "abfss://a", "file:/a", "memory:")}

    assert [url for url, one in listed.items() if one is None] == ["file:/a", "memory:"]
    assert all(one.price.currency == "USD" and one.price.per_thousand_gets for one in listed.values() if one)
