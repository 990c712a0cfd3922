"""tieredctl on Apache Spark: an engine for `--engine spark`, data sources, and jobs for spark-submit."""
