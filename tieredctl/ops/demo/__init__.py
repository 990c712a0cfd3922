"""The cluster that `tieredctl demo` shows, and the faults that it injects."""
