"""`recover indexes`: a segment's indexes in the remote store, rebuilt from its log."""
