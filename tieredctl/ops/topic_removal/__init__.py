"""KIP-405's remote-partition removal: deletes a partition from remote storage, and records that in the metadata."""
