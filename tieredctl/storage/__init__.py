"""Object stores of each kind, and how a `--store` URL becomes one."""
