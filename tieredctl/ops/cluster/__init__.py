"""Facts: the settings of a cluster, its brokers and topics, what its releases do, and which topics exist."""
