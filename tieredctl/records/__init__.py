"""Records straight from remote storage, as a consumer would read them: from metadata, a store and a layout alone."""
