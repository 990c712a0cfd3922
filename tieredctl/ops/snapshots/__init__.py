"""KRaft snapshots: comparing them, and removing those that retention no longer keeps."""
