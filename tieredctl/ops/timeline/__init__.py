"""Partitions over their offsets, by their metadata and what is known of their logs."""
