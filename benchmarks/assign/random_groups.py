"""Random groups in the public problem format, from a seed, with events as in production.

Groups are balanced at random; then a client joins, leaves, is replaced or returns. Some copies are
behind or unknown; threads, standbys, stateless parts, racks and tags are mixed.
"""

import random
from uuid import UUID

ZONES = ("a", "b", "c")
KINDS = ("steady", "join", "join2", "leave", "replace", "return", "mess")


def random_problem(seed):
    """The problem of a seed."""
    rng = random.Random(seed)
    kind, racks, tags = rng.choice(KINDS), rng.random() < 0.25, rng.random() < 0.2
    count = rng.randint(2, 8)
    parts = rng.randint(1, 4)
    replicas = rng.choice([0, 0, 1, 1, 2])
    topics, subs, ends, stateful = {}, {}, {}, set()
    for sub in range(parts):
        size = rng.randint(2, 16)
        topic = {"partitions": size}
        if racks:
            topic["racks"] = {str(p): rng.sample(ZONES, 2) for p in range(size)}
        topics[f"in-{sub}"] = topic
        has_state = sub == 0 or rng.random() < 0.75
        if has_state:
            topics[f"log-{sub}"] = dict(topic)
        subs[str(sub)] = {
            "sources": [f"in-{sub}"],
            "changelogs": [f"log-{sub}"] if has_state else [],
        }
        names = [f"{sub}_{p}" for p in range(size)]
        stateful |= set(names) if has_state else set()
        ends |= {name: rng.choice([500, 50_000, 500_000, 5_000_000]) for name in names}
    clients = {_uuid(rng): _client(rng, racks, tags) for _ in range(count)}
    _deal(rng, clients, ends, stateful, replicas)
    for _ in range({"join": 1, "join2": 2}.get(kind, 0)):
        clients[_uuid(rng)] = _client(rng, racks, tags)
    if kind in {"leave", "replace", "return"}:
        _leave(rng, kind, clients, _client(rng, racks, tags))
    if kind == "mess":
        _mess(rng, clients, ends)
    config = {
        "num.standby.replicas": replicas,
        "max.warmup.replicas": rng.choice([1, 2, 4]),
        "rack.aware.assignment.tags": ["zone"] if tags else [],
        "rack.aware.assignment.strategy": rng.choice(["none", "min_traffic"]) if racks else "none",
    }
    return {
        "name": f"random-{seed}-{kind}",
        "config": config,
        "topics": topics,
        "subtopologies": subs,
        "end_offset_sums": {name: ends[name] for name in sorted(stateful)},
        "clients": clients,
    }


def _uuid(rng):
    return str(UUID(int=rng.getrandbits(128), version=4))


def _client(rng, racks, tags):
    client = {"threads": rng.choice([1, 1, 2, 4]), "active": [], "standby": [], "lags": {}}
    if racks:
        client["rack"] = rng.choice(ZONES)
    if tags:
        client["tags"] = {"zone": rng.choice(ZONES)}
    return client


def _deal(rng, clients, ends, stateful, replicas):
    """Place tasks at random, balanced by threads, and standbys on other clients."""
    slots = [c for c in clients.values() for _ in range(c["threads"])]
    names = sorted(ends)
    rng.shuffle(names)
    rng.shuffle(slots)
    for place, name in enumerate(names):
        owner = slots[place % len(slots)]
        owner["active"].append(name)
        if name not in stateful:
            continue
        owner["lags"][name] = "running"
        others = [c for c in clients.values() if c is not owner]
        for other in rng.sample(others, min(replicas, len(others))):
            other["standby"].append(name)
            other["lags"][name] = min(rng.choice([0, 0, 50, 4_000]), ends[name])


def _leave(rng, kind, clients, other):
    """Remove a client; replace it by a new one or by itself with its state, if `kind` says so."""
    left = clients.pop(min(clients))
    if kind == "return":
        lags = dict.fromkeys(left["lags"], 100)
        clients[_uuid(rng)] = left | {"active": [], "standby": [], "lags": lags}
    elif kind == "replace":
        clients[_uuid(rng)] = other


def _mess(rng, clients, ends):
    """Make some copies lag far behind, some unknown, and remove some."""
    for client in clients.values():
        for name in sorted(client["lags"]):
            draw = rng.random()
            if draw < 0.15:
                client["lags"][name] = min(rng.choice([20_000, 400_000]), ends[name])
            elif draw < 0.2:
                client["lags"][name] = "unknown"
            elif draw < 0.25:
                del client["lags"][name]
