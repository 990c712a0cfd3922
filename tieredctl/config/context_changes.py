"""Changes of the contexts in the configuration file, which keep all else in it as it is written, comments too.

One run at a time changes it, by a lock beside it, and the new file replaces the old one as a whole.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tieredctl.config.contexts import Context, contexts_in, demand_context
from tieredctl.config.file import CONTEXTS, CURRENT_CONTEXT, VARIABLE, bad, configuration_path, file_bytes, settings_in
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.interruption import critical_section, mark_complete

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

_INDENT = 2
_MARK = "---"
"""Where a YAML document begins."""


def use_context(name: str | None, *, dry_run: bool = False) -> None:
    """Makes a context the current one; none of them for None. Raises TieredctlError `usage` if there is none of that
    name, `bad-config` if the file cannot be used, and `unwritable`. A dry run raises the same, and changes nothing."""

    def change(text: str, said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if name is not None:
            contexts_in(said).named(name)
        rest = {key: value for key, value in said.items() if key != CURRENT_CONTEXT}
        text = _without(text, CURRENT_CONTEXT)
        return (text, rest) if name is None else (_with_current(text, name), {**rest, CURRENT_CONTEXT: name})

    _change(change, dry_run=dry_run)


def add_context(context: Context, *, replace: bool, dry_run: bool = False) -> None:
    """Adds a context, or replaces the one of that name. Raises TieredctlError `usage` for one that the file cannot
    have, or if there is one and it is not to be replaced, and the others of `use_context`."""
    demand_context(context)

    def change(text: str, said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        known = dict(contexts_in(said).by_name)
        if context.name in known:
            if not replace:
                message, hint = f"There is a context {context.name!r} already.", "Give --force to replace it."
                raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
            text = _without(text, CONTEXTS, context.name)
        entries = {**(said.get(CONTEXTS) or {}), context.name: context.entry()}
        return _with_entry(text, context), {**said, CONTEXTS: entries}

    _change(change, dry_run=dry_run)


def remove_context(name: str, *, dry_run: bool = False) -> None:
    """Removes a context; it is not the current one any more. Raises TieredctlError as `use_context` does."""

    def change(text: str, said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        found = contexts_in(said)
        found.named(name)
        left = {key: value for key, value in said[CONTEXTS].items() if key != name}
        rest = {key: value for key, value in said.items() if key != CONTEXTS}
        if found.current == name:
            text, rest = _without(text, CURRENT_CONTEXT), {k: v for k, v in rest.items() if k != CURRENT_CONTEXT}
        return _without(text, CONTEXTS, name), rest | ({CONTEXTS: left} if left else {})

    _change(change, dry_run=dry_run)


_Change = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]
"""Of a file's text and its settings, those that it is to have."""


def _change(change: _Change, *, dry_run: bool) -> None:
    path = Path(os.path.realpath(configuration_path()))  # a link stays one
    _demand_replaceable(path)
    try:
        if dry_run:
            _demand_writable(path.parent)
            _changed(path, change)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            changed, is_new = _changed(path, change)
            _replace(path, changed, 0o600 if is_new else path.stat().st_mode & 0o777)
    except OSError as error:
        message = f"{configuration_path()} cannot be changed: {error.strerror}."
        raise TieredctlError(ErrorCode.UNWRITABLE, message) from None
    except UnicodeDecodeError:
        raise _not_by_program() from None


def _demand_replaceable(path: Path) -> None:
    """Raises TieredctlError `unwritable` for a device or a pipe, as /dev/null is for who wants no settings: to replace
    it would take it from everybody else."""
    if path.exists() and not path.is_file():
        message = f"{configuration_path()} exists and is not a regular file."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint=f"Name a file with {VARIABLE}.")


def _demand_writable(folder: Path) -> None:
    """Raises OSError where this user may not write into a folder, or make it."""
    nearest = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES))


def _changed(path: Path, change: _Change) -> tuple[bytes, bool]:
    """What the file is to have, and whether there is none yet."""
    data = file_bytes() if path.exists() or not os.environ.get(VARIABLE) else None
    said = dict(settings_in(data or b""))
    text, expected = change((data or b"").decode("utf-8"), said)
    changed = text.encode("utf-8")
    if not _says(changed, expected):
        raise _not_by_program()
    contexts_in(expected)
    return changed, data is None


def _says(data: bytes, expected: dict[str, Any]) -> bool:
    try:
        return dict(settings_in(data)) == expected
    except TieredctlError:
        return False


def _not_by_program() -> TieredctlError:
    hint = "Edit it by hand; nothing was changed."
    return bad("it is written in a way that tieredctl cannot change without rewriting the rest", hint=hint)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(
        path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        with critical_section():
            os.replace(temporary, path)
            mark_complete()
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _root(text: str) -> MappingNode | None:
    import yaml

    node = yaml.SafeLoader(text).get_single_node()
    return node if isinstance(node, yaml.MappingNode) else None


def _child(mapping: Node | None, name: str) -> tuple[Node, Node] | None:
    from yaml.nodes import MappingNode

    pairs = mapping.value if isinstance(mapping, MappingNode) else ()
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _without(text: str, *names: str) -> str:
    """Without the lines of an entry; and of the one around it, if it was the only one."""
    from yaml.nodes import CollectionNode

    text = text if not text or text.endswith("\n") else f"{text}\n"
    node: Node | None = _root(text)
    around: list[tuple[Node, Node]] = []
    for name in names:
        found = _child(node, name)
        if found is None:
            return text
        around.append(found)
        node = found[1]
    while len(around) > 1 and len(around[-2][1].value) == 1:
        around.pop()
    key, value = around[-1]
    lines = text.splitlines(keepends=True)
    first, last = key.start_mark.line, value.end_mark.line
    # The end of a block is where the next thing begins.
    is_block = isinstance(value, CollectionNode) and not value.flow_style
    if not is_block and (value.end_mark.column > 0 or last == first):
        last += 1
    while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
        last -= 1  # a comment after it is about what comes next
    return "".join(lines[:first] + lines[last:])


def _with_current(text: str, name: str) -> str:
    """At the top; where the document is marked as one (`---`), as its first entry."""
    lines = text.splitlines(keepends=True)
    root = _root(text) if any(line.startswith(_MARK) for line in lines) else None
    first = 0 if root is None else root.start_mark.line
    return "".join([*lines[:first], f"{CURRENT_CONTEXT}: {_scalar(name)}\n", *lines[first:]])


def _with_entry(text: str, context: Context) -> str:
    contexts = _child(_root(text), CONTEXTS)
    if contexts is not None and not contexts[1].value:
        text, contexts = _without(text, CONTEXTS), None
    if contexts is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{CONTEXTS}:\n{_block(context, _INDENT)}"
    first = contexts[1].value[0][0].start_mark
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: first.line], _block(context, first.column), *lines[first.line :]])


def _block(context: Context, indent: int) -> str:
    import yaml

    # The width keeps each value on its line.
    block = yaml.safe_dump({context.name: context.entry()}, sort_keys=False, allow_unicode=True, width=1 << 20)
    return "".join(" " * indent + line for line in block.splitlines(keepends=True))


def _scalar(text: str) -> str:
    import json

    return json.dumps(text)
