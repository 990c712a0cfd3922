"""What each verb does from beginning to end: it opens what is named, in the order that is safe, and runs the operation.

The command line, Spark's jobs and a notebook all come in here: see `places` for how things are named.
"""
