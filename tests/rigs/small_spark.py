"""What a Spark is started with that lives for one test: what serves a large one costs a small one most of its time."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rigs.maven import QUICK_JAVA

SMALL = {
    "spark.driver.extraJavaOptions": " ".join(QUICK_JAVA),
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""To compile a query takes longer than to interpret it over a few rows; jobs that are submitted compile."""


def conf_words(settings: Mapping[str, object]) -> list[str]:
    """Settings as spark-submit takes them."""
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
