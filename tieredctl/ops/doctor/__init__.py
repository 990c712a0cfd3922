"""`doctor`: a cluster's settings and state, and the rules that turn them into findings."""
