"""What other packages bring: found by their entry points, and loaded when it is asked for.

So is `importlib.metadata`: it takes as long to import as a tenth of a look-up, and most commands ask for no plugin.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tieredctl.errors import ErrorCode, TieredctlError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True)
class PluginKind:
    """Plugins that can stand in for one another, such as layouts."""

    noun: str
    """What messages call one of them."""
    group: str
    """The group of entry points, each of which names what makes one."""
    unknown: ErrorCode = ErrorCode.MISSING_EXTRA
    """What a name is answered with that is not installed."""
    built_in: tuple[str, ...] = ()
    """Names that stand for what needs no plugin, and so are not for `make`."""

    def names(self) -> list[str]:
        """All that can be asked for, whether or not it can be loaded."""
        return sorted({*self.built_in, *(point.name for point in self._points())})

    def installed(self) -> str:
        """The same, for a message."""
        return f"installed are: {', '.join(self.names()) or 'none'}"

    def make(self, name: str, *arguments: object) -> Any:
        """What the plugin of that name makes of what is given.

        Raises TieredctlError: `unknown` where none or several are called so, `missing-extra` where the plugin lacks
        something that it imports, or where tieredctl itself is not installed; and as the plugin does.
        """
        maker = self.load(name)
        try:
            return maker(*arguments)
        except ImportError as error:
            raise self._not_loaded(name, error) from None

    def load(self, name: str) -> Any:
        """What the entry point of that name names. Raises TieredctlError as `make` does."""
        point = self._point(name)
        try:
            return point.load()
        except Exception as error:  # noqa: BLE001 - whatever a package of somebody else's does
            raise self._not_loaded(name, error) from None

    def _point(self, name: str) -> EntryPoint:
        by_value = {point.value: point for point in self._points() if point.name == name}
        if not by_value:
            self.demand_installed()
            hint = f"Name an installed one, or install the plugin, for example with `pip install tieredctl-{name}`."
            raise TieredctlError(self.unknown, f"There is no {self.noun} {name!r}; {self.installed()}.", hint=hint)
        if len(by_value) > 1:
            message = f"Several plugins provide a {self.noun} {name!r}: {', '.join(sorted(by_value))}."
            raise TieredctlError(self.unknown, message, hint="Uninstall all of them but one.")
        return next(iter(by_value.values()))

    def demand_installed(self) -> None:
        """Raises TieredctlError `missing-extra` for modules alone, such as a zip of sources given to Spark with
        --py-files: they have no entry points."""
        from importlib.metadata import PackageNotFoundError, distribution

        try:
            distribution("tieredctl")
        except PackageNotFoundError:
            message = f"No {self.noun} can be found: tieredctl is not installed here, its sources were only copied."
            hint = "Install its packages; on Spark, use --archives with the file that `make spark-archive` packs."
            raise TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint) from None

    def _points(self) -> list[EntryPoint]:
        return list(_installed(self.group, tuple(sys.path)))

    def _not_loaded(self, name: str, error: Exception) -> TieredctlError:
        message = f"The plugin of {self.noun} {name!r} cannot be loaded: {error}."
        return TieredctlError(ErrorCode.MISSING_EXTRA, message)


def installed_names(group: str) -> list[str]:
    """The names of a group's entry points, sorted."""
    return sorted({point.name for point in _installed(group, tuple(sys.path))})


@cache
def _installed(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """What the packages on Python's path bring."""
    return tuple(_of_all_groups(path).select(group=group))


@cache
def _of_all_groups(path: tuple[str, ...]) -> Any:
    """To find out, files of all packages are read."""
    from importlib.metadata import entry_points

    del path  # by which packages are found
    return entry_points()
