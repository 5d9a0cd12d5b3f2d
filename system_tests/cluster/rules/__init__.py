"""Rules of the simulated cluster, checked on its trace."""
