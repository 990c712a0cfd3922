"""Contracts: what every store, layout, metadata source and package of commands has to do, as tests for pytest.

A package of somebody else's inherits a contract's class and gives its fixtures (docs/extending.md). Needs the extra
`tieredctl[testing]`.
"""

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))
