"""Which program each member runs: its own description first, then that of equal programs.

A program is identified by the fingerprint and the version that its members report. A leader cannot
check that a fingerprint is that of the rows beside it, so a description holds for the member that
sends it. For members that send none, it is used if most processes agree on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from assignor.rebalance.forms.carried import carried_from, program_fingerprint
from assignor.rebalance.forms.reports import ProgramKey, has_valid_version, key_of, report_of
from assignor.topology import CarriedTopologies, content_fingerprint, plain
from encoding import Subscription, shown

_LISTED = 3
_Content = tuple[tuple[bytes, ...], tuple[tuple[int, ...], ...]]
_Writers = dict[str, str]
"""Member id -> process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What members can run.

    Attributes:
        own_key: of the leader's program.
        base_key, base: the program whose numbers hold: the leader's; beside JVM members the one of
            the lowest version, which they have.
        keys: of the programs that members name.
        has_jvm: a JVM member is in the group.
        by_member: member id -> its program, as far as the leader knows it; of JVM members the base.
        described: key of a program -> what it carries, for members that do not describe it.
        warnings: a sentence for each program that members describe differently.
    """

    own_key: ProgramKey
    base_key: ProgramKey
    base: CarriedTopologies
    keys: frozenset[ProgramKey]
    has_jvm: bool
    by_member: Mapping[str, CarriedTopologies]
    described: Mapping[ProgramKey, CarriedTopologies]
    warnings: tuple[str, ...]


def read_programs(
    own: CarriedTopologies,
    subscriptions: Mapping[str, Subscription],
    remembered: Mapping[ProgramKey, CarriedTopologies],
) -> Programs:
    """Return which program each member runs.

    Args:
        own: what the leader carries.
        subscriptions: of every member that can be read.
        remembered: `Programs.described` of the rebalance before.
    """
    own_key = (program_fingerprint(own), max(own.all_versions, default=1))
    natives = {m: value for m, value in subscriptions.items() if value.native is not None}
    own_rows = {m: c for m, value in natives.items() if (c := _described(value, own))}
    sides: dict[ProgramKey, dict[_Content, _Writers]] = {}
    for member, carried in own_rows.items():
        side = sides.setdefault(key_of(natives[member], own_key), {})
        side.setdefault(_content(carried), {})[member] = str(natives[member].process_id)
    known = dict(remembered)
    for key, side in sides.items():
        agreed = _agreed(side, remembered.get(key))
        if agreed is None:
            known.pop(key, None)
        else:
            known[key] = own_rows[min(side[agreed])]
    if len(own.all_versions) <= 1:
        # The same topology under another version number needs no description.
        for value in natives.values():
            key = key_of(value, own_key)
            if key[0] == own_key[0]:
                known[key] = plain(own.subtopologies, key[1])
    known[own_key] = own
    keys = frozenset(
        key_of(value, own_key)
        for value in natives.values()
        if report_of(value).is_readable and has_valid_version(value)
    )
    # JVM members were there first: they have the lowest version of the topology.
    lowest = min(keys, key=lambda key: (key[1], key != own_key, key[0]), default=own_key)
    has_jvm = len(natives) < len(subscriptions)
    base_key = lowest if has_jvm else own_key
    base = known.get(base_key, own)
    by_member = {m: known.get(key_of(value, own_key)) for m, value in natives.items()}
    by_member |= own_rows | dict.fromkeys(subscriptions.keys() - natives.keys(), base)
    return Programs(
        own_key=own_key,
        base_key=base_key,
        base=base,
        keys=keys,
        has_jvm=has_jvm,
        by_member={m: carried for m, carried in by_member.items() if carried is not None},
        described=known,
        warnings=tuple(
            _disputed(key, side, own if key == own_key else None)
            for key, side in sorted(sides.items())
        ),
    )


def contents_of(carried: CarriedTopologies) -> tuple[bytes, ...]:
    """Return the content of each subtopology, by its number."""
    return tuple(map(content_fingerprint, carried.subtopologies))


def _content(carried: CarriedTopologies) -> _Content:
    """What two descriptions of one program have in common."""
    return contents_of(carried), carried.versions


def _described(value: Subscription, own: CarriedTopologies) -> CarriedTopologies | None:
    """What a member describes; with the leader's own values where it describes the same."""
    carried = carried_from(report_of(value).carried)
    if carried is None:
        return None
    content = _content(carried)
    if content == _content(own):
        return own
    if content[0] == _content(own)[0]:
        return replace(carried, subtopologies=own.subtopologies)
    return carried


def _agreed(
    side: Mapping[_Content, _Writers], remembered: CarriedTopologies | None
) -> _Content | None:
    """The description that most processes give; of equally many: the remembered one, or none."""
    processes = {content: len({*writers.values()}) for content, writers in side.items()}
    most = max(processes.values())
    best = [content for content in side if processes[content] == most]
    if len(best) == 1:
        return best[0]
    before = None if remembered is None else _content(remembered)
    return before if before in best else None


def _disputed(
    key: ProgramKey, side: Mapping[_Content, _Writers], own: CarriedTopologies | None
) -> str:
    """The sentence about a program that is described in several ways; empty: it is not."""
    names = [min(writers) for writers in side.values()]
    if own is not None and _content(own) not in side:
        names.append("this leader")
    if len(names) == 1:
        return ""
    listed = " and ".join(shown(name) for name in sorted(names)[:_LISTED])
    return (
        f"{listed} describe the topology {shown(key[0].hex() or 'none')}, version {key[1]},"
        " differently: each gets tasks of what it describes itself; stop the member that runs"
        " another program than its fingerprint says"
    )
