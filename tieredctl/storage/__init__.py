"""Where objects live: the `ObjectStore` protocol, its implementations, and how a `--store` URL becomes one."""
