"""The installed layouts: how the objects of a store map to segments."""
