"""WAL tiering (KIP-1176) on real stores: combined objects made of brokers' logs, shown, verified, removed, restored."""
