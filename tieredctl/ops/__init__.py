"""What tieredctl does, one package per subject. Knows protocols, not the SDKs; prints nothing."""
