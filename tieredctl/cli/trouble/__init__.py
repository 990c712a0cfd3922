"""When something goes wrong: traces, crash files, support bundles, interruptions."""
