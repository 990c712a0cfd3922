"""What each verb does from beginning to end: it opens what is named, in the safe order, and runs the operation.

The command line, Spark jobs and notebooks all start here: see `places` for how things are named.
"""
