"""What a command found, as the values of a page (`--report`)."""
