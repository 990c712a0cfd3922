"""WAL tiering as KIP-1176 proposed it, as a library: combined objects of several partitions' latest batches, the events
about them, who reads them, and when they may go."""
