"""The project's own packages of commands pass the contract that packages of others do."""

from __future__ import annotations

import pytest
from tieredctl_inkless.commands import INKLESS
from tieredctl_proposals.commands import PROPOSALS
from tieredctl_spark.commands import SPARK

from tieredctl.testing.commands import CommandsContract


@pytest.mark.parametrize("package", [INKLESS, PROPOSALS, SPARK], ids=lambda one: one.package)
class TestOwnPackages(CommandsContract):
    pass
