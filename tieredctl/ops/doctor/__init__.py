"""`doctor`: what a cluster is set to and has, and the rules that turn that into findings."""
