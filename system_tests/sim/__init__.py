"""The simulated world: one seed, the only clock, the only dice; real bytes between members."""
