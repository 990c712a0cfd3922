"""Changes of contexts, each in a file of its own beside the configuration file, which belongs to its user and stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tieredctl.config.contexts import (
    CURRENT,
    SUFFIX,
    Context,
    Contexts,
    current_context,
    demand_context,
    kept_contexts,
    written_contexts,
)
from tieredctl.config.file import VARIABLE, configuration_folder, configuration_path, contexts_folder
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.replaced_file import demand_writable, replaced_file


def file_of_context(name: str) -> Path:
    """Where a context is kept."""
    return contexts_folder() / f"{name}{SUFFIX}"


def use_context(name: str | None, *, dry_run: bool = False) -> None:
    """Makes a context the current one; none of them for None. Raises TieredctlError `usage` if there is none of that
    name, `bad-config` if a file cannot be used, and `unwritable`. A dry run raises the same, and changes nothing."""
    _demand_changeable()
    if name is not None:
        _all_contexts().named(name)
    _write(contexts_folder() / CURRENT, name or "", replace=True, dry_run=dry_run)


def add_context(context: Context, *, replace: bool, dry_run: bool = False) -> None:
    """Adds a context, or replaces the one of that name. Raises TieredctlError `usage` for one that a file cannot have,
    or if there is one and it is not to be replaced, and the others of `use_context`."""
    import yaml

    demand_context(context)
    _demand_changeable()
    if not replace and context.name in _all_contexts().by_name:
        message, hint = f"There is a context {context.name!r} already.", "Give --force to replace it."
        raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
    # The width keeps each value on its line.
    text = yaml.safe_dump(context.entry(), sort_keys=False, allow_unicode=True, width=1 << 20)
    _write(file_of_context(context.name), text, replace=replace, dry_run=dry_run)


def remove_context(name: str, *, dry_run: bool = False) -> None:
    """Removes a context; it is not the current one any more. Raises TieredctlError as `use_context` does, and `usage`
    for one of the configuration file."""
    _demand_changeable()
    _all_contexts().named(name)
    if name in _written_contexts():
        message = f"Context {name} is written in {configuration_path()}, which tieredctl does not change."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Remove it there.")
    if current_context()[0] == name:
        _write(contexts_folder() / CURRENT, "", replace=True, dry_run=dry_run, is_last=False)
    with _as_unwritable():
        if dry_run:
            demand_writable(contexts_folder())
            return
        with critical_section():
            file_of_context(name).unlink()
            mark_complete()


def _all_contexts() -> Contexts:
    return Contexts({**_written_contexts(), **kept_contexts()}, None)


def _written_contexts() -> Mapping[str, Context]:
    """The contexts of the configuration file, which need not exist for others to be kept beside it."""
    return written_contexts() if configuration_path().exists() else {}


def _write(path: Path, text: str, *, replace: bool, dry_run: bool, is_last: bool = True) -> None:
    with _as_unwritable():
        if dry_run:
            demand_writable(next(folder for folder in path.parents if folder.exists()))
            return
        for folder in (configuration_folder(), path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_file(path, force=replace, is_last=is_last) as file:
            file.write(text.encode())


@contextmanager
def _as_unwritable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{contexts_folder()} cannot be changed: {error.strerror}."
        raise TieredctlError(ErrorCode.UNWRITABLE, message) from None


def _demand_changeable() -> None:
    """Raises TieredctlError `unwritable` for a device or a pipe, as /dev/null is for who wants no settings: beside it
    is no place for contexts."""
    path = configuration_path()
    if path.exists() and not path.is_file():
        message = f"{path} exists and is not a regular file."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint=f"Name a file with {VARIABLE}.")
