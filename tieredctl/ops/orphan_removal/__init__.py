"""Removing objects of a remote store that no segment owns, and putting them back."""
