"""What it would cost, take and save."""
