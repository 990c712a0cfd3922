"""What the commands open, in a safe order."""
