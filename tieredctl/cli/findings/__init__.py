"""Findings as a person reads them: groups, the gravest first, with what to do."""
