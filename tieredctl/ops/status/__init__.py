"""`status`: a cluster on one screen, from what is known without reading its store."""
