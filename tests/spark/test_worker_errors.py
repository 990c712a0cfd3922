"""What a Python worker raises is on the driver what it was there, whichever job or source it was raised in."""

from __future__ import annotations

import io
import pickle
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.util import handle_worker_exception
from tieredctl_spark import metadata_pass
from tieredctl_spark.failure_marks import mark, marked_error
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.jobs import usage as job
from tieredctl_spark.metadata_shares import planned_shares
from tieredctl_spark.worker_failures import one_sentence
from tieredctl_spark.worker_functions import mapped, mapped_groups, mapped_pairs

from tests.house.test_packaging import ROOT
from tests.spark.damage import REMOTE
from tieredctl.errors import DecodeError, ErrorCode, ExitCode, TieredctlError
from tieredctl.model.printable import printable
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.process.crash_file import FaultElsewhere, crash_text, fault_error
from tieredctl.wiring.places import MetadataPlace

IDS = pa.schema({"id": pa.int64()})
MESSAGE = 'A "key"\nof <two> lines: ${x} \\n, ümlaut, \x1b[2J, \udc80 and \u2028: {}.'
HINT = "Look\nagain: <here> or $there."
TEXTS = MESSAGE, HINT
FORGED = mark(TieredctlError(ErrorCode.LOCKED, "Forged.", hint=""))
TALL = "tieredctl-error: " + "[" * 100_000
NOT_MARKS = (
    'tieredctl-error: {"code": "clean", "message": "m", "hint": "h"}',
    'tieredctl-error: {"code": "usage", "message": 7, "hint": "h"}',
    'tieredctl-error: {"code": ["usage"], "message": "m", "hint": "h"}',
    'tieredctl-error: {"code": "usage", "message": "m"}',
    'tieredctl-error: {"code": "usage"',
    "tieredctl-error: {}",
    "tieredctl-error: {" + '"a": {' * 100_000 + "}",
    TALL,
    f"before it {FORGED}",
)


def raising(error: BaseException) -> Any:
    """A function for workers; the error travels pickled, as functions with their variables do."""
    pickled = pickle.dumps(error)

    def change(*_: object) -> NoReturn:
        raise pickle.loads(pickled)

    return change


def raised_in_a_worker(spark: SparkSession, error: BaseException) -> Exception:
    """What the driver raises where a worker raised this."""
    with pytest.raises(Exception) as failure, spark_failures():  # noqa: PT011 - whatever it is
        mapped(spark.range(0, 1, 1, 1), raising(error), IDS).collect()
    return failure.value


def written_down(errors: Sequence[BaseException]) -> Any:
    """A function for workers: what PySpark writes to the JVM for each error."""
    functions = [raising(error) for error in errors]

    def change(_: object) -> Iterator[pa.RecordBatch]:
        for function in functions:
            written = io.BytesIO()
            try:
                with one_sentence():
                    function()
            except Exception as error:  # noqa: BLE001 - whatever it is
                handle_worker_exception(error, written)
            yield pa.RecordBatch.from_pydict({"text": [written.getvalue().decode("utf-8", "replace")]})

    return change


def facts(error: Exception) -> tuple[object, ...]:
    assert isinstance(error, TieredctlError), error
    return error.code, error.message, error.hint, error.exit_code


@pytest.mark.spark
def test_each_error_has_its_code_message_hint_and_exit_code_on_the_driver(spark: SparkSession) -> None:
    errors = [TieredctlError(code, MESSAGE, hint=HINT) for code in ErrorCode if code is not ErrorCode.FAULT]

    texts = mapped(spark.range(0, 1, 1, 1), written_down(errors), pa.schema({"text": pa.string()})).collect()

    assert len(errors) > 50
    for error, (text,) in zip(errors, texts, strict=True):
        found = marked_error(text)
        assert found is not None, text
        assert facts(found) == facts(error)
    error = TieredctlError(ErrorCode.LOCKED, MESSAGE, hint=HINT)
    assert facts(raised_in_a_worker(spark, error)) == facts(error)


@pytest.mark.spark
def test_what_executors_raise_of_every_kind_is_what_commands_would_say(spark: SparkSession) -> None:
    decoding = DecodeError("it is cut short", 7)

    assert facts(raised_in_a_worker(spark, decoding)) == facts(decoding)
    assert facts(raised_in_a_worker(spark, FileNotFoundError(2, "No such file", "there")))[0] is ErrorCode.PATH_MISSING
    assert facts(raised_in_a_worker(spark, MemoryError()))[0] is ErrorCode.UNREADABLE
    assert facts(raised_in_a_worker(spark, ModuleNotFoundError("No module named 'x'")))[0] is ErrorCode.SPARK_FAILED


@pytest.mark.spark
def test_groups_and_pairs_of_groups_raise_what_rows_do(spark: SparkSession) -> None:
    error = TieredctlError(ErrorCode.WORLD_CHANGED, MESSAGE, hint=HINT)
    groups = spark.range(3).groupBy("id")

    for frame in (
        mapped_groups(groups, raising(error), IDS),
        mapped_pairs(groups.cogroup(spark.range(2).groupBy("id")), raising(error), IDS),
    ):
        with pytest.raises(TieredctlError) as failure, spark_failures():
            frame.collect()
        assert facts(failure.value) == facts(error)


@pytest.mark.spark
@pytest.mark.parametrize("where", ["reader", "partitions", "read"])
def test_a_source_raises_its_error_wherever_spark_calls_it(spark: SparkSession, where: str) -> None:
    error = TieredctlError(ErrorCode.STORE_FORBIDDEN, MESSAGE, hint=HINT)
    spark.dataSource.register(refusing_source(where, raising(error)))

    with pytest.raises(TieredctlError) as failure, spark_failures():
        spark.read.format("refusing").load().collect()

    assert facts(failure.value) == facts(error)


def refusing_source(where: str, refuse: Any) -> type[DataSource]:
    def at(place: str) -> None:
        if place == where:
            with one_sentence():
                refuse()

    class Reader(DataSourceReader):
        def partitions(self) -> Sequence[InputPartition]:
            at("partitions")
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            at("read")
            yield (partition.value,)

    class Refusing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "refusing"

        def schema(self) -> str:
            return "id long"

        def reader(self, schema: object) -> DataSourceReader:
            at("reader")
            return Reader()

    return Refusing


@pytest.mark.spark
def test_a_fault_of_ours_is_one_on_the_driver_with_the_workers_place_and_traceback(spark: SparkSession) -> None:
    def at_fault(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from printable(7)  # type: ignore[arg-type]

    with pytest.raises(FaultElsewhere) as failure, spark_failures():
        mapped(spark.range(0, 1, 1, 1), at_fault, IDS).collect()

    error, report = fault_error(failure.value, None), crash_text(failure.value, [])
    assert error.code is ErrorCode.FAULT
    assert re.search(r"has a fault at \S*/tieredctl/model/printable\.py:\d+: AttributeError\(", error.message)
    assert "in at_fault" in report
    assert "tieredctl-error" not in report


@pytest.mark.spark
@pytest.mark.parametrize("error", [ValueError(MESSAGE), FileNotFoundError(2, "No such file", "\udc80")], ids=repr)
def test_spark_does_not_wait_for_an_error_that_is_not_utf_8(spark: SparkSession, error: Exception) -> None:
    raised_in_a_worker(spark, error)


@pytest.mark.spark
def test_what_spark_raises_within_our_functions_is_sparks(spark: SparkSession) -> None:
    def misusing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from io import BytesIO

        from pyspark.serializers import read_int

        yield from [read_int(BytesIO())]  # type: ignore[no-untyped-call]

    with pytest.raises(TieredctlError) as failure, spark_failures():
        mapped(spark.range(0, 1, 1, 1), misusing, IDS).collect()

    assert failure.value.code is ErrorCode.SPARK_FAILED


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_job_ends_with_the_exit_code_of_an_executors_error(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(kafka_4 / "data", tmp_path / "data"))

    def then_recreated(place: MetadataPlace) -> Any:
        """The topic is another one before executors look."""
        shares = planned_shares(place)
        for file in data.glob(f"{METADATA_TOPIC}-*/partition.metadata"):
            file.write_text(re.sub("topic_id: .*", "topic_id: ABCDEFGHIJKLMNOPQRSTUg", file.read_text()))
        return shares

    monkeypatch.setattr(metadata_pass, "planned_shares", then_recreated)
    where = ["--log-dir", str(data), "--store", f"file:{kafka_4 / REMOTE}", "--layout", "local"]

    code = job.main([*where, "--output", str(tmp_path / "output")])

    sentence, hint = capsys.readouterr().err.splitlines()
    assert code == ErrorCode.WORLD_CHANGED.exit_code == ExitCode.INCOMPLETE
    assert sentence.startswith(f"{METADATA_TOPIC} was deleted and recreated")
    assert hint.strip() == ErrorCode.WORLD_CHANGED.hint


def test_a_mark_is_one_line_that_no_template_or_terminal_reads() -> None:
    line = mark(TieredctlError(ErrorCode.USAGE, MESSAGE, hint=HINT))

    assert line.isascii()
    assert line.isprintable()
    assert not set("<>$") & set(line)


@pytest.mark.parametrize("line", NOT_MARKS, ids=range(len(NOT_MARKS)))
def test_what_is_no_mark_of_a_registered_code_is_not_believed(line: str) -> None:
    assert marked_error(f"Something\n{line}\n") is None


def test_of_several_marks_the_one_raised_last_counts() -> None:
    own = mark(TieredctlError(ErrorCode.USAGE, *TEXTS[:1], hint=HINT))

    found = marked_error(f"tieredctl.errors.TieredctlError: key\n{FORGED}\n{own}\n{NOT_MARKS[0]}\n SQLSTATE: 38000")

    assert found is not None
    assert facts(found) == facts(TieredctlError(ErrorCode.USAGE, MESSAGE, hint=HINT))


def test_there_is_no_other_way_into_a_worker() -> None:
    ways = re.compile(r"\.(?:mapIn\w+|applyIn\w+|mapPartitions\w*|foreachPartition|rdd)\b|\b\w*udf\(")
    found = {file.name for file in (ROOT / "spark").rglob("*.py") if ways.search(file.read_text(encoding="utf-8"))}

    assert found == {"worker_functions.py"}
