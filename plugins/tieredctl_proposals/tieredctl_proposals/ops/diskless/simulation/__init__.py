"""A cluster with KIP-1164's coordinators, its object store and its faults, in one process and with simulated time."""
