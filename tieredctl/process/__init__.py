"""What every process has beside its work: critical sections, progress, traces, crash files, metrics, redaction."""
