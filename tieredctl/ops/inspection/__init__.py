"""`store inspect`: what kind of file a broker or store left, and what it contains."""
