"""One store beside another: what differs, and copies of what is missing."""
