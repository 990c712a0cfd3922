"""How `remote records` shows records."""
