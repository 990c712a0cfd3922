"""`store check`: do the files that brokers keep next to their logs agree with each other and with the metadata topic?

The files are read before the metadata, so that the metadata is never the older of the two.
"""
