"""YAML as a settings file may have it: no aliases, which can grow without bound, and no name twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.nodes import Node


_TAKEN_OTHERWISE = frozenset(b"\t!|>?")
"""Bytes around which libyaml takes what PyYAML refuses, or takes it for something else."""


class NotYaml(ValueError):
    """Why a text cannot be used, without any of its values."""


def parsed(data: bytes) -> Any:
    """What a text says. Raises NotYaml."""
    import yaml

    fault: Exception = ValueError()
    for loader_of in _loaders(data):
        try:
            loader = loader_of(data)
            node = loader.get_single_node()
            if node is None:
                return None
            _demand_strict(node)
            return loader.construct_document(node)
        except NotYaml:
            raise
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            fault = error
    raise NotYaml(f"it is not valid YAML: {_cause(fault)}") from None


def _loaders(data: bytes) -> Iterator[Any]:
    """Makes loaders of a text: one that takes a sixth of the time, where libyaml is, then that whose reasons are told.
    What libyaml parses is put together in Python, which ends where a text is nested too deep: libyaml crashes."""
    import yaml

    if yaml.__with_libyaml__ and _TAKEN_OTHERWISE.isdisjoint(data):
        from yaml._yaml import CParser
        from yaml.composer import Composer
        from yaml.constructor import SafeConstructor
        from yaml.resolver import Resolver

        class FastLoader(Composer, CParser, SafeConstructor, Resolver):
            def __init__(self, data: bytes) -> None:
                CParser.__init__(self, data)
                for part in (Composer, SafeConstructor, Resolver):
                    part.__init__(self)

        yield FastLoader
    yield yaml.SafeLoader


def _cause(error: Exception) -> str:
    """Without the text around it, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
    return problem if mark is None else f"{problem}, in line {mark.line + 1}"


def _demand_strict(root: Node) -> None:
    from yaml.nodes import MappingNode, ScalarNode

    node_ids: set[int] = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in node_ids:
            raise NotYaml(f"line {node.start_mark.line + 1} is used by an alias, which is not supported")
        node_ids.add(id(node))
        if isinstance(node, ScalarNode):
            continue
        if isinstance(node, MappingNode):
            names: set[str] = set()
            for name, value in node.value:
                if isinstance(name, ScalarNode):
                    if name.value in names:
                        raise NotYaml(f"line {name.start_mark.line + 1} has a name that was there before")
                    names.add(name.value)
                left += (name, value)
        else:
            left += node.value
