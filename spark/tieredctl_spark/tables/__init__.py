"""Parquet tables without a catalog: a run's files become current together, by a manifest that is written last."""
