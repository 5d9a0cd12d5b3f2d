"""The soak: a group disturbed for an hour, and what it cost: nothing lost, nothing that grows.

`draw_schedule` says what happens when, `Soak` does it to real processes, `Tally` counts in constant
memory, `Gauges` watch memory and descriptors, and the verdict is a set of pure functions.
"""
