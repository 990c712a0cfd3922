"""Filters that Spark pushes down to a data source, where `spark.sql.python.filterPushdown.enabled` is true.

They only spare work: Spark applies each of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import and_, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": eq,
    "GreaterThan": gt,
    "GreaterThanOrEqual": ge,
    "LessThan": lt,
    "LessThanOrEqual": le,
}
_IN, _STARTS_WITH, _IS_NULL, _IS_NOT_NULL = "In", "StringStartsWith", "IsNull", "IsNotNull"


class _Condition(NamedTuple):
    column: str
    kind: str
    value: Any

    def expression(self) -> pc.Expression:
        field = pc.field(self.column)
        if self.kind in _COMPARISONS:
            return _COMPARISONS[self.kind](field, self.value)
        if self.kind == _IN:
            return field.isin([value for value in self.value if value is not None])
        if self.kind == _STARTS_WITH:
            return pc.starts_with(field, pattern=self.value)
        return field.is_null() if self.kind == _IS_NULL else field.is_valid()

    def allows(self, value: Any) -> bool:
        if self.kind in _COMPARISONS:
            return bool(_COMPARISONS[self.kind](value, self.value))
        if self.kind == _IN:
            return value in self.value
        return self.kind != _IS_NULL


class PushedFilters:
    """Conditions on a source's columns that all have to hold. Those of other forms are left to Spark."""

    def __init__(self, columns: Sequence[str]) -> None:
        """`columns`: the ones that the source can filter by."""
        self._columns = frozenset(columns)
        self._conditions: list[_Condition] = []

    def take(self, filters: Iterable[Filter]) -> list[Filter]:
        """Keeps what can be used, and returns all: Spark is to apply them too."""
        filters = list(filters)
        for one in filters:
            kind = type(one).__name__
            path: tuple[str, ...] = getattr(one, "attribute", ())
            known = kind in _COMPARISONS or kind in (_IN, _STARTS_WITH, _IS_NULL, _IS_NOT_NULL)
            if known and len(path) == 1 and path[0] in self._columns:
                self._conditions.append(_Condition(path[0], kind, getattr(one, "value", None)))
        return filters

    def demand_no(self, column: str) -> None:
        """Adds that a column has to be null."""
        self._conditions.append(_Condition(column, _IS_NULL, None))

    def kept(self, table: pa.Table) -> pa.Table:
        """The rows of a table that has these columns for which they hold."""
        if not self._conditions:
            return table
        expression = self._conditions[0].expression()
        for condition in self._conditions[1:]:
            expression = and_(expression, condition.expression())
        return table.filter(expression)

    def allow(self, column: str, value: Any) -> bool:
        """Whether there may be rows with this value."""
        return all(condition.allows(value) for condition in self._conditions if condition.column == column)

    def bounds(self, column: str, least: int, end: int) -> tuple[int, int]:
        """The least whole number from `least` on that may be in rows, and the end, exclusive, of such numbers."""
        for _, kind, value in (one for one in self._conditions if one.column == column):
            if kind == _IN:
                values = [one for one in value if one is not None]
                least, end = max(least, min(values, default=end)), min(end, max(values, default=least - 1) + 1)
            if kind in ("EqualTo", "GreaterThanOrEqual", "GreaterThan"):
                least = max(least, value + (kind == "GreaterThan"))
            if kind in ("EqualTo", "LessThanOrEqual", "LessThan"):
                end = min(end, value + (kind != "LessThan"))
        return least, end

    def values(self, column: str) -> list[Any] | None:
        """The only values that may be in rows; None if there may be others."""
        for _, kind, value in (one for one in self._conditions if one.column == column):
            if kind in ("EqualTo", _IN):
                return [value] if kind == "EqualTo" else list(value)
        return None

    def prefix(self, column: str) -> str:
        """What values of a text begin with."""
        prefixes = (one.value for one in self._conditions if (one.column, one.kind) == (column, _STARTS_WITH))
        return max(prefixes, key=len, default="")

    def demand_one_of(self, columns: Iterable[str]) -> bool:
        """Whether there are only rows in which one of these columns is not null."""
        wanted = set(columns)
        return any(one.column in wanted and one.kind != _IS_NULL for one in self._conditions)

    def demand_null(self, column: str) -> bool:
        """Whether there are only rows in which a column is null."""
        return any((one.column, one.kind) == (column, _IS_NULL) for one in self._conditions)


class FilteringReader(DataSourceReader):
    """A reader that uses pushed filters if it gets any."""

    def __init__(self, filters: PushedFilters) -> None:
        self.filters = filters

    @property
    def pushFilters(self) -> Any:  # noqa: N802
        """Spark refuses to plan a reader with a method of its own of this name where filters are not pushed down, so
        this looks like the inherited one."""
        push: Any = partial(self.filters.take)
        push.__func__ = DataSourceReader.pushFilters
        return push
