"""People read sizes with units, from one function; documents have bytes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import tieredctl.cli
import tieredctl.ops
from tieredctl.cli.output import TableColumn
from tieredctl.model.result_row import Quantity, ResultRow

SOURCES = Path(tieredctl.cli.__path__[0])
OF_BYTES = re.compile(r"(bytes|size)\Z", re.IGNORECASE)
COUNTED_IN_BYTES = re.compile(r" bytes?\b")


def test_every_column_of_bytes_has_units() -> None:
    columns = {(module, column.heading): column for module, column in columns_of_commands()}
    of_bytes = {
        where: one for where, one in columns.items() if isinstance(one.value, str) and OF_BYTES.search(one.value)
    }

    assert len(of_bytes) >= 6
    assert [where for where, one in of_bytes.items() if one.people_read is None] == []


def test_every_row_says_which_of_its_fields_are_sizes() -> None:
    of_bytes = {
        (row, attribute): column
        for row in declared_rows()
        for attribute, column in row.columns().items()
        if OF_BYTES.search(attribute)
    }

    assert len(of_bytes) >= 6
    assert [where for where, one in of_bytes.items() if one.quantity is not Quantity.SIZE] == []


def test_every_sentence_of_a_command_has_units() -> None:
    counted = [f"{file.relative_to(SOURCES)}: {text}" for file in SOURCES.rglob("*.py") for text in in_bytes(file)]

    assert counted == []


def columns_of_commands() -> Iterator[tuple[str, TableColumn]]:
    for found in walk_packages(tieredctl.cli.__path__, "tieredctl.cli."):
        for value in vars(import_module(found.name)).values():
            for column in value if isinstance(value, tuple) else ():
                if isinstance(column, TableColumn):
                    yield found.name, column


def declared_rows() -> Iterator[type[ResultRow]]:
    for package in (tieredctl.cli, tieredctl.ops):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(import_module(found.name)).values():
                if isinstance(value, type) and issubclass(value, ResultRow):
                    yield value


def in_bytes(file: Path) -> Iterator[str]:
    """Texts that count bytes one by one."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                is_text = isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)
                if is_text and COUNTED_IN_BYTES.match(ast.literal_eval(text)):
                    yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "counted":
            yield from (ast.unparse(node) for one in node.args if isinstance(one, ast.Constant) and one.value == "byte")
