"""Spark's failures as one sentence."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkImportError
from tieredctl_spark.failures import reason, spark_failures

from tieredctl.errors import TieredctlError

IN_A_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x.py", line 22, in f
    raise KeyError(1)
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x.py", line 24, in f
    raise ValueError("what a")
ValueError: what a
mess
"""
OF_A_TASK = """An error occurred while calling o127.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 1 times, most \
recent failure: Lost task 1.0 in stage 1.0 (TID 3) (10.0.0.1 executor 1): org.apache.spark.SparkException: Python \
worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
"""
OF_A_DATA_SOURCE = """[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: \
tieredctl.errors.TieredctlError: There is no /nowhere: look again.
 SQLSTATE: 38000
"""
OF_THE_START = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start with spark
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""
OF_THE_CONTEXT = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'nonsense'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3391)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IN_A_WORKER, "ValueError: what a"),
        (OF_A_TASK, "Python worker exited unexpectedly (crashed)."),
        (OF_A_DATA_SOURCE, "There is no /nowhere: look again."),
        (IN_A_WORKER + "tieredctl.errors.TieredctlError: It is cut short.\n", "It is cut short."),
        (OF_THE_START, "Master must either be yarn or start with spark"),
        (OF_THE_CONTEXT, "Could not parse Master URL: 'nonsense'"),
        ("[CONDITION] Something. SQLSTATE: 0A000", "[CONDITION] Something. SQLSTATE: 0A000"),
        ("", "it gave no reason"),
    ],
)
def test_the_line_that_says_why_is_found(text: str, said: str) -> None:
    assert reason(text) == said


def test_a_package_that_pyspark_lacks_is_reported_as_missing() -> None:
    with pytest.raises(TieredctlError) as failure, spark_failures():
        raise PySparkImportError("[PACKAGE_NOT_INSTALLED] pandas must be installed.")

    assert failure.value.code == "missing-extra"
    assert failure.value.message == "Spark cannot run here: [PACKAGE_NOT_INSTALLED] pandas must be installed."
