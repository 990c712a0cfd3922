"""`doctor`: typed facts of settings and clusters, and the rules that turn them into findings."""
