"""tieredctl on Apache Spark: an engine for `--engine spark`, two data sources, and jobs for spark-submit."""
