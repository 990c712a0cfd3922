"""KIP-1164's diskless coordinator as a library: which batch of which partition lies where in which file."""
