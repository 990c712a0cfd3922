"""Values and finding kinds."""
