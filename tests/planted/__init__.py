"""Planted faults: deliberate changes of the code that tests or a checker must notice."""
