"""Random views, and views of balanced groups of any size, for the tests of views."""

import numpy as np
from hypothesis import strategies as st

from encoding import HostInfo, View

_names = st.text("ab-1.", min_size=1, max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12
)
_hosts = st.lists(
    st.builds(HostInfo, _names, st.sampled_from((0, 80, 8080, 65_535))), max_size=9, unique=True
)


@st.composite
def views(draw, *, hosts=_hosts):
    table = tuple(sorted(draw(hosts)))
    sizes = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    tasks, ranks = sum(sizes), draw(st.integers(0, min(3, len(table))))
    owner = st.integers(-1, len(table) - 1)
    column = st.lists(owner, min_size=tasks, max_size=tasks)
    standbys = [draw(column) for _ in range(ranks)]
    return View(
        epoch=draw(st.integers(0, 2**63 - 1)),
        sizes=sizes,
        hosts=table,
        active=np.array(draw(column), np.int32),
        standbys=np.array(standbys, np.int32).reshape(ranks, tasks),
    )


_pool = [HostInfo(f"app-{number}.example", 8080) for number in range(6)]


def pairs_of_views():
    """Pairs of views that share most hosts."""
    few = st.lists(st.sampled_from(_pool), max_size=6, unique=True)
    return st.tuples(views(hosts=few), views(hosts=few))


def steady(clients, tasks, *, ranks=1, epoch=1, subtopologies=1, seed=7):
    """The view of a balanced group: numbered host names, random owners."""
    random = np.random.default_rng(seed)
    hosts = tuple(
        HostInfo(f"streams-{number:05}.prod.example.net", 8080) for number in range(clients)
    )
    active = random.permutation(np.arange(tasks) % clients)
    steps = random.permuted(np.tile(np.arange(1, clients), (tasks, 1)), axis=1)[:, :ranks]
    standbys = ((active[:, None] + steps) % clients).T
    rest = tasks - (subtopologies - 1) * (tasks // subtopologies)
    sizes = (*(tasks // subtopologies,) * (subtopologies - 1), rest)
    return View(epoch=epoch, sizes=sizes, hosts=hosts, active=active, standbys=standbys)
