"""Removing objects of a remote store that nobody owns, and putting them back."""
