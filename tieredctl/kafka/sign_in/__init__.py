"""How a client proves who it is: one module for each SASL mechanism, and one function that chooses."""
