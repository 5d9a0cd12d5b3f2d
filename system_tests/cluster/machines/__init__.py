"""Sans-IO state machines of the controller and the replica, for the simulated cluster."""
