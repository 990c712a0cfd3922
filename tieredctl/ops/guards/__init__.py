"""What stands between a command and lost data: lease, ledger, quarantine keys, comparison, a second look."""
