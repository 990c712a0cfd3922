"""The ledger before it was a table: in folders that Spark wrote. It is read, and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from pyspark.sql import DataFrame

from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.tables.kinds import READINGS

_FOLDERS = ("ledger/chunks", "ledger/base0", "ledger/base1")


@dataclass(frozen=True, slots=True)
class EarlierLedger:
    """The one in a job's output folder, if there is one."""

    output: OutputFolder

    @property
    def run_id(self) -> str:
        """The run that its rows get: of each, only what was read and when is known."""
        return f"imported-{sha256(self.output.url.encode()).hexdigest()[:12]}"

    def rows(self) -> DataFrame:
        """Its rows, by READINGS.columns. One may be there twice."""
        chunks, *bases = (self.output.frame(name, READINGS.columns) for name in _FOLDERS)
        return chunks.unionByName(bases[0]).unionByName(bases[1])
