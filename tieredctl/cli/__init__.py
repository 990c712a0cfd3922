"""The shell: parses, calls one operation, renders. Decides nothing about data."""

PROGRAM = "tieredctl"
