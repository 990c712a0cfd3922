"""Diskless topics as they are: status, objects, where an offset lies, verification, orphans. Changes nothing."""
