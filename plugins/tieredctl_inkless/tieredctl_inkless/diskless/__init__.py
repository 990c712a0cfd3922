"""Topics kept in object storage alone, in objects that mix partitions: the values of what coordinates them."""
