"""Where the ledger is: beside a job's results, by the names that tieredctl's own stores have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tieredctl_spark.ledger_place import ledger_in

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import StorePlace

STORE = StorePlace("s3://kafka-tiered/prod", {"endpoint": "http://127.0.0.1:1"})


def output(url: str) -> Any:
    """An output folder, as Spark names it."""
    return SimpleNamespace(url=url)


@pytest.mark.parametrize(
    ("spark", "own", "options"),
    [
        ("file:/results", "file:/results/ledger", {}),
        ("s3a://lake/verify", "s3://lake/verify/ledger", STORE.options),
        ("gs://lake/verify", "gs://lake/verify/ledger", {}),
        (
            "abfss://lake@account.dfs.core.windows.net/verify",
            "abfss://lake@account.dfs.core.windows.net/verify/ledger",
            {},
        ),
    ],
)
def test_it_is_in_the_output_folder(spark: str, own: str, options: dict[str, str]) -> None:
    place = ledger_in(output(spark), STORE)

    assert (place.url, place.options) == (own, options)


def test_a_file_system_without_a_store_is_refused() -> None:
    with pytest.raises(TieredctlError) as refusal:
        ledger_in(output("viewfs://cluster/results"), STORE)

    assert refusal.value.code is ErrorCode.USAGE
    assert "--tables" in refusal.value.hint
