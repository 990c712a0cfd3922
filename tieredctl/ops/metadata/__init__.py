"""Reading `__remote_log_metadata`: its events, which of them are here, and their result."""
