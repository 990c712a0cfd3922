"""What tieredctl does, one module a use case. Knows protocols, not the SDKs behind them; prints nothing."""
