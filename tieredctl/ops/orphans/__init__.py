"""Objects of a remote store that no segment owns."""
