"""A cluster kept beside its bucket: what a set has, how sets follow each other, and whether they are whole."""
