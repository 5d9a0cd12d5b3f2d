"""Who runs which task: topology, group state, strategies, leader and member."""
