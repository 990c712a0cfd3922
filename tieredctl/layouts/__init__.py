"""How the objects of a store map to segments: the protocol that every storage plugin implements, and its registry."""
