"""Geometry of drawings: offsets and numbers become cells of a width. What a cell looks like is for others to say."""
