"""Two versions of the word count's topology, and one that renames a store.

E=assignor.examples.topologies; rolling-bounce plan --topology $E:FIRST $E:SECOND
"""

from assignor import Topology


def counting(version: int, *stores: str) -> Topology:
    """Return a topology that counts words in these stores."""
    topology = Topology(version=version).add_source("read", topics=["words"])
    topology.add_processor("count", parents=["read"])
    for store in stores:
        topology.add_state_store(store, processors=["count"])
    return topology


FIRST = counting(1, "counts")
SECOND = counting(2, "counts", "lengths")
RENAMED = counting(2, "word-counts")
