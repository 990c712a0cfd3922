"""The pipeline: metadata and store become tables that remember."""
