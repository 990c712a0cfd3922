"""The contract of a package of commands (`tieredctl.model.command_packages.CommandPackage`)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tieredctl.cli.command_rows import tables
from tieredctl.cli.completion.command_table import CommandTable
from tieredctl.cli.man_pages import man_pages
from tieredctl.model.command_packages import CommandPackage, command_packages
from tieredctl.model.findings import FINDING_KINDS

_LOADED = "import sys, tieredctl.model.command_packages as found; found.command_packages(); print(*sys.modules)"
OPERATIONS = {"Describe", "DescribeConfigs", "Read", "Write", "Create", "Delete", "Alter", "AlterConfigs"}
"""The operations of Kafka's ACLs."""


class CommandsContract:
    """To be inherited by the tests of a package of commands, which have a fixture `package`."""

    @pytest.fixture
    def table(self, package: CommandPackage) -> CommandTable:
        """The rows of its commands, for completions and manual pages."""
        return CommandTable(package.table())

    def test_it_is_registered(self, package: CommandPackage) -> None:
        assert package in command_packages()

    def test_its_value_loads_nothing_that_its_commands_need(self, package: CommandPackage) -> None:
        done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=120)

        assert not {one.module for one in package.commands} & set(done.stdout.split())

    def test_its_table_is_what_its_commands_say(self, package: CommandPackage) -> None:
        texts = {file.parent.name: text for file, text in tables().items()}

        hint = f"write it again with `python -m tieredctl.cli.command_rows {package.package}`"
        assert package.table() == texts[package.package.rpartition(".")[2]], hint

    def test_each_command_has_a_line_of_help_an_example_and_a_manual_page(self, table: CommandTable) -> None:
        verbs = [words for words in table.commands() if words and not table.verbs(words)]

        assert verbs
        assert [words for words in verbs if "For example: tieredctl" not in table.command(words).help] == []
        assert {f"tieredctl-{'-'.join(words)}.1" for words in verbs} <= set(man_pages(table))

    def test_it_names_the_rights_of_every_command_that_may_ask_brokers(
        self, package: CommandPackage, table: CommandTable
    ) -> None:
        asking = {words for words in table.commands() if "--bootstrap-server" in table.command(words).options}

        assert set(package.rights) == asking
        assert {one for rights in package.rights.values() for kind in rights for one in kind} <= OPERATIONS

    def test_its_kinds_of_findings_are_no_others(self, package: CommandPackage) -> None:
        counts = Counter(kind.code for one in command_packages() for kind in one.finding_kinds())

        assert [code for code, count in counts.items() if count > 1] == []
        assert all(FINDING_KINDS[kind.code] is kind for kind in package.finding_kinds())
