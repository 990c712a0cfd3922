"""KIP-405's remote-partition removal: whatever remote storage has of a partition goes, and the metadata says so."""
