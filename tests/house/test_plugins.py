"""Plugins of every kind are found by the names that installed packages give them; what is wrong with one is said."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from tieredctl import plugins
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.registry import METADATA_SOURCES
from tieredctl.layouts.registry import LAYOUTS
from tieredctl.ops.verification.engine import ENGINES
from tieredctl.plugins import PluginKind
from tieredctl.ports.store_kinds import STORES

Install = Callable[..., None]
KINDS = [LAYOUTS, ENGINES, METADATA_SOURCES, STORES]


@pytest.fixture(params=KINDS, ids=[kind.noun for kind in KINDS])
def kind(request: pytest.FixtureRequest) -> PluginKind:
    found: PluginKind = request.param
    return found


@pytest.fixture
def install(kind: PluginKind, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes these names, each of what it stands for, all that is installed of the kind."""

    def only(**values: str | tuple[str, ...]) -> None:
        points = [
            EntryPoint(name, value, kind.group)
            for name, given in values.items()
            for value in ((given,) if isinstance(given, str) else given)
        ]
        monkeypatch.setattr(plugins, "_installed", lambda group, _: [point for point in points if point.group == group])

    return only


def refused(kind: PluginKind, name: str) -> TieredctlError:
    with pytest.raises(TieredctlError) as raised:
        kind.make(name)
    return raised.value


def test_it_is_made_of_what_is_given_and_a_package_that_is_found_twice_is_one(
    kind: PluginKind, install: Install
) -> None:
    install(pairs=("builtins:dict", "builtins:dict"))

    assert kind.make("pairs", {"a": 1}) == {"a": 1}


def test_an_unknown_name_is_answered_with_what_is_installed(kind: PluginKind, install: Install) -> None:
    install(pairs="builtins:dict", broken="no_such_plugin:it")

    error = refused(kind, "acme")

    assert error.code is kind.unknown
    assert error.message.startswith(f"There is no {kind.noun} 'acme'; installed are: broken, ")
    assert error.message.endswith("pairs.")
    assert "pip install tieredctl-acme" in error.hint


def test_a_plugin_or_a_library_that_cannot_be_loaded_is_named(kind: PluginKind, install: Install) -> None:
    install(acme="no_such_plugin:it", other="builtins:no_such_name", late="importlib:import_module")

    for name, given in {"acme": (), "other": (), "late": ("no_such_library",)}.items():  # the last when it is used
        with pytest.raises(TieredctlError) as raised:
            kind.make(name, *given)

        assert raised.value.code is ErrorCode.MISSING_EXTRA, name
        assert raised.value.message.startswith(f"The plugin of {kind.noun} '{name}' cannot be loaded: ")
        assert "no_such" in raised.value.message, name


def test_of_two_packages_that_bring_the_same_name_neither_is_chosen(kind: PluginKind, install: Install) -> None:
    install(acme=("one:make", "other:make"))

    error = refused(kind, "acme")

    assert error.code is kind.unknown
    assert error.message == f"Several plugins provide a {kind.noun} 'acme': one:make, other:make."
