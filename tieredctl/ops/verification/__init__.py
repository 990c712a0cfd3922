"""Does the remote store hold what the metadata promises?

Each check takes bytes and metadata and gives findings; `segment_check.py` joins them for one segment,
`partition_check.py` for one partition, and `verify.py` for a cluster. They run in this process or on Spark's executors
alike, so all inputs and results can be pickled.
"""
