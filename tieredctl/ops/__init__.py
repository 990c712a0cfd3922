"""What tieredctl does, one package a subject. Knows protocols, not the SDKs behind them; prints nothing."""
