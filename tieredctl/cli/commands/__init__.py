"""One module a noun: each adds its commands to the application."""
