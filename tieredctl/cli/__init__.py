"""The shell: parses, calls one operation, renders. Decides nothing about data."""

from contextvars import ContextVar

PROGRAM = "tieredctl"
running_command: ContextVar[str] = ContextVar("running_command", default=PROGRAM)
"""The words of the command that runs, such as `orphans scan`."""
running_words: ContextVar[tuple[str, ...]] = ContextVar("running_words", default=())
"""All words of the command line that runs, without the program's name."""
named_context: ContextVar[str | None] = ContextVar("named_context", default=None)
"""What --context named, anywhere in the line."""
owns_process: ContextVar[bool] = ContextVar("owns_process", default=False)
"""Whether the process is this command line alone, not a program that runs one."""
