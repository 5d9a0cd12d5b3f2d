"""Pages of documentation; the ones made from tables are printed by ``python -m docs.generate``."""
