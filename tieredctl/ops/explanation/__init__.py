"""`explain`: where an offset lives, and how a consumer or a follower would get it."""
