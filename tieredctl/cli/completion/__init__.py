"""Completions of what is typed in a shell, answered without loading the commands."""
