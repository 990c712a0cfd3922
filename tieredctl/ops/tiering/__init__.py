"""Turning tiered storage on and off for a topic: what to check, what it takes, the change itself, and its effect."""
