"""Rebuilds `__remote_log_metadata` from what the remote store has, though the topic that held it was lost."""
