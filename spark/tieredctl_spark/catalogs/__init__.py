"""Tables in a catalog of Spark's: Iceberg or Delta."""
