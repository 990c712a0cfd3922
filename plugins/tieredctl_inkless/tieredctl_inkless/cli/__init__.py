"""Options and commands."""
