"""Estimates of cost, time, bytes and savings."""
