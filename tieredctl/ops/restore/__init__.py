"""A cluster brought back on new nodes, from its bucket and a backup set, with the same topic ids."""
