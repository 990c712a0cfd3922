"""HDFS: a store by its REST interface, and the layout of Uber's HDFSRemoteStorageManager."""
