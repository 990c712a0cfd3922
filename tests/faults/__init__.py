"""Clusters with faults in them, each with one that is known: for what has to find them."""
