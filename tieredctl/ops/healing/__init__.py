"""Objects of segments that are missing or damaged, made again; of indexes alone, from the segment's log."""
