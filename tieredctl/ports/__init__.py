"""The protocols that operations see, and the values that they speak in. Nothing here opens anything."""
