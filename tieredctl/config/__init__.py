"""Settings that outlive a command line: a YAML file."""
