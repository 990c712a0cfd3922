"""What an exporter serves: a cluster's figures, kept up to date by following its metadata."""
