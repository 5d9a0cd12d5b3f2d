"""Which program each member runs: its own description first, then that of equal programs.

A program is identified by the fingerprint and the version that its members report. A leader cannot
check that a fingerprint is that of the rows beside it, so a description holds for the member that
sends it. For members that send none, it is used if most processes agree on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.rebalance.forms.carried import carried_from, program_fingerprint
from assignor.rebalance.forms.reports import TopologyReport
from assignor.topology import CarriedTopologies, content_fingerprint, plain
from encoding import shown

_LISTED = 3
ProgramKey = tuple[bytes, int]
"""Fingerprint and highest version of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What members can run.

    Attributes:
        own_key: of the leader's program.
        by_member: native member id -> its program, as far as the leader knows it.
        described: key of a program -> what it carries, for members that do not describe it.
        warnings: a sentence for each program that members describe differently.
    """

    own_key: ProgramKey
    by_member: Mapping[str, CarriedTopologies]
    described: Mapping[ProgramKey, CarriedTopologies]
    warnings: tuple[str, ...]


def key_of(report: TopologyReport, own_key: ProgramKey) -> ProgramKey:
    """Return what identifies a member's program; a member that names none has the leader's."""
    return (report.fingerprint, report.version) if report.fingerprint else own_key


def read_programs(
    own: CarriedTopologies,
    reports: Sequence[TopologyReport],
    remembered: Mapping[ProgramKey, CarriedTopologies],
) -> Programs:
    """Return which program each member runs.

    Args:
        own: what the leader carries.
        reports: of every member whose subscription can be read.
        remembered: `Programs.described` of the rebalance before.
    """
    own_key = (program_fingerprint(own), max(own.all_versions, default=1))
    natives = [report for report in reports if not report.is_jvm]
    described = {r.member_id: _described(r, own) for r in natives if r.rows}
    sides: dict[ProgramKey, dict[_Content, list[TopologyReport]]] = {}
    carried_by_content: dict[tuple[ProgramKey, _Content], CarriedTopologies] = {}
    for report in natives:
        carried = described.get(report.member_id)
        if carried is not None:
            key, content = key_of(report, own_key), _content(carried)
            sides.setdefault(key, {}).setdefault(content, []).append(report)
            carried_by_content.setdefault((key, content), carried)
    known = dict(remembered)
    for key, found in sides.items():
        agreed = _agreed(found, remembered.get(key))
        if agreed is None:
            known.pop(key, None)
        else:
            known[key] = carried_by_content[key, agreed]
    if len(own.all_versions) <= 1:
        # The same topology under another version number needs no description.
        for _, version in {key_of(r, own_key) for r in natives if r.fingerprint == own_key[0]}:
            known[own_key[0], version] = plain(own.subtopologies, version)
    known[own_key] = own
    by_member = {}
    for report in natives:
        carried = described.get(report.member_id) or known.get(key_of(report, own_key))
        if carried is not None:
            by_member[report.member_id] = carried
    return Programs(
        own_key=own_key,
        by_member=by_member,
        described=known,
        warnings=tuple(
            _disputed(key, found, own if key == own_key else None)
            for key, found in sorted(sides.items())
        ),
    )


_Content = tuple[tuple[bytes, ...], tuple[tuple[int, ...], ...]]


def _content(carried: CarriedTopologies) -> _Content:
    """What two descriptions of one program have in common."""
    return tuple(map(content_fingerprint, carried.subtopologies)), carried.versions


def _described(report: TopologyReport, own: CarriedTopologies) -> CarriedTopologies | None:
    """What a member describes; with the leader's own values where it describes the same."""
    carried = carried_from(report.rows)
    if carried is None:
        return None
    content = _content(carried)
    if content == _content(own):
        return own
    if content[0] == _content(own)[0]:
        return replace(carried, subtopologies=own.subtopologies)
    return carried


def _agreed(
    found: Mapping[_Content, Sequence[TopologyReport]], remembered: CarriedTopologies | None
) -> _Content | None:
    """The description that most processes give; of equally many: the remembered one, or none."""
    processes = {content: len({r.process for r in reports}) for content, reports in found.items()}
    most = max(processes.values())
    best = [content for content in found if processes[content] == most]
    if len(best) == 1:
        return best[0]
    before = None if remembered is None else _content(remembered)
    return before if before in best else None


def _disputed(
    key: ProgramKey,
    found: Mapping[_Content, Sequence[TopologyReport]],
    own: CarriedTopologies | None,
) -> str:
    """The sentence about a program that is described in several ways; empty: it is not."""
    names = [min(report.member_id for report in reports) for reports in found.values()]
    if own is not None and _content(own) not in found:
        names.append("this leader")
    if len(names) == 1:
        return ""
    listed = " and ".join(shown(name) for name in sorted(names)[:_LISTED])
    return (
        f"{listed} describe the topology {shown(key[0].hex() or 'none')}, version {key[1]},"
        " differently: each gets tasks of what it describes itself; stop the member that runs"
        " another program than its fingerprint says"
    )
