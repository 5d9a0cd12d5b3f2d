"""The routing part of a key: which member holds, reports or is sent which routing view.

A group without members that serve queries has no such part. View epochs only grow, so a key holds
their ranks: a group that returns to an earlier state gets the same key. A delta's result follows
from the latest routing decision and from the view that the member reported.
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

from encoding import (
    DecodeError,
    FutureSubscription,
    ViewReference,
    decode_assignment,
    decode_reference,
    decode_subscription,
    decode_view,
    view_reference,
)
from system_tests.coordinator import JoinGroup, SyncGroup
from system_tests.explore.world import SearchWorld
from system_tests.sim.world import read_assignment, read_subscription, routed_by

_NOTHING = None, ()


class _Fact(NamedTuple):
    """A reference to a view, or None, with its source and further content."""

    source: str
    view: ViewReference | None
    content: Hashable = ()


def routing_facts(world: SearchWorld) -> Hashable:
    """Return a value that is equal for equal routing; None if no member serves queries."""
    if not world.setup.dimensions.routes:
        return None
    facts = [*_held(world), *_stored(world), *_in_requests(world)]
    views = sorted({fact.view for fact in facts if fact.view is not None})
    rank = {view: index for index, view in enumerate(views)}
    found = [(fact.source, fact.view and (rank[fact.view],), fact.content) for fact in facts]
    decided = world.decisions[-1] if world.decisions else None
    return (tuple(found), decided and (decided.active, decided.standby))


def _held(world: SearchWorld) -> Iterable[_Fact]:
    for thread in world.threads:
        if thread.is_up:
            view, routing = thread.streams.view, thread.streams.routing
            yield _Fact(
                thread.name,
                None if view is None else view_reference(view),
                (routed_by(routing.active), routed_by(routing.standby)),
            )


def _stored(world: SearchWorld) -> Iterable[_Fact]:
    """What members said and were answered, as the coordinator has it."""
    names = world.member_ids.names
    for member in sorted(world.group.members.values(), key=lambda entry: names[entry.member_id]):
        name = names[member.member_id]
        yield _Fact(f"{name} reported", _reported(member.protocols[0].metadata))
        yield _Fact(f"{name} got", *_routing_of(member.assignment))


def _in_requests(world: SearchWorld) -> Iterable[_Fact]:
    for pending in world.scheduler.pending():
        if pending.kind != "request":
            continue
        request, name = pending.data[0], world.threads[pending.target].name
        if isinstance(request, JoinGroup):
            yield _Fact(f"{name} reports", _reported(request.protocols[0].metadata))
        elif isinstance(request, SyncGroup):
            for member_id, data in sorted(request.assignments.items()):
                yield _Fact(f"{world.member_ids.names[member_id]} gets", *_routing_of(data))


@lru_cache(maxsize=65_536)
def _reported(metadata: bytes) -> ViewReference | None:
    """Return the view that a member reports in its subscription; None if none."""
    try:
        value = decode_subscription(read_subscription(metadata).user_data)
    except DecodeError:
        return None
    if isinstance(value, FutureSubscription) or value.native is None or value.native.view_epoch < 0:
        return None
    return ViewReference(value.native.view_epoch, value.native.view_checksum)


@lru_cache(maxsize=65_536)
def _routing_of(data: bytes) -> tuple[ViewReference | None, Hashable]:
    """Return the view that an assignment names, None for a delta, and its form or host maps."""
    if not data:
        return _NOTHING
    try:
        value = decode_assignment(read_assignment(data)[1])
    except DecodeError:
        return _NOTHING
    native = value.native
    if native is None:
        maps = value.partitions_by_host, value.standby_partitions_by_host
        return None, tuple(map(routed_by, maps))
    if native.view_full is not None:
        view = decode_view(native.view_full)
        return view_reference(view), ("full", view.hosts, view.owners().tobytes())
    if native.view_reference is not None:
        return decode_reference(native.view_reference), "reference"
    return None, "none" if native.view_delta is None else "delta"
