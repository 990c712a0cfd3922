"""A topic's history as a table: what was copied to remote storage since the last run is appended."""
