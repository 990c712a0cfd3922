"""Facts: what a cluster, its brokers and topics are set to, what its releases do, and which topics there are."""
