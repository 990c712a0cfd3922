"""KRaft snapshots and the metadata log: what is in them, comparing them, and removing those that retention no longer
keeps."""
