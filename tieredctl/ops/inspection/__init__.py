"""`store inspect`: what a file of a broker or a store is, and what it says."""
