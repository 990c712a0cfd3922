"""YAML as a settings file may have it: no aliases, which can grow without bound, and no name twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.nodes import Node


class NotYaml(ValueError):
    """Why a text cannot be used, without any of its values."""


def parsed(data: bytes) -> Any:
    """What a text says. Raises NotYaml."""
    import yaml

    try:
        loader = yaml.SafeLoader(data)
        node = loader.get_single_node()
        if node is None:
            return None
        _demand_strict(node)
        return loader.construct_document(node)
    except NotYaml:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise NotYaml(f"it is not valid YAML: {_cause(error)}") from None


def _cause(error: Exception) -> str:
    """Without the text around it, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
    return problem if mark is None else f"{problem}, in line {mark.line + 1}"


def _demand_strict(root: Node) -> None:
    from yaml.nodes import MappingNode, ScalarNode

    seen: set[int] = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in seen:
            raise NotYaml(f"line {node.start_mark.line + 1} is used by an alias, which is not supported")
        seen.add(id(node))
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
