"""What coordinators' logs tell, and a simulated cluster."""
