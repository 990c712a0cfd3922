"""`recover indexes`: what lies beside a segment's log in the remote store, rebuilt from the log."""
