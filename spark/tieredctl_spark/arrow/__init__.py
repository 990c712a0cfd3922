"""What executors compute, Arrow in and Arrow out: nothing here knows Spark."""
