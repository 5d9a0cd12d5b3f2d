"""Whether a group fits one record of the broker, and what to leave out if it does not.

A broker stores a classic group as a single record with every member's subscription and assignment,
at most `message.max.bytes`; a larger group fails as a whole with an error that names no size
(RECORD_TOO_LARGE becomes UNKNOWN_SERVER_ERROR). So a leader adds up what it is about to send and
drops routing data first: full view, delta, reference, none, the largest form in the whole group
before a smaller one. Own tasks are never left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from encoding import TopicPartition, ViewForm, shown

GROUP_RECORD_LIMIT = 1_048_588
"""Bytes of a group's record on a broker with default settings."""

RECORD_BYTES = 512
"""Bytes of the record itself: headers, key with the group id, protocol and leader."""

_LADDER = tuple(ViewForm)
_CLIENT_HOST = 40  # bytes of the longest text of an IPv6 address, and a slash
_MEMBER_SUFFIX = 37  # a hyphen and a UUID, which the coordinator appends to the client id
_MEMBER_FIXED = 26  # two timeouts, two lengths of blobs, four lengths of strings and the group's


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberBytes:
    """What one member costs the group's record.

    Attributes:
        subscription: bytes of its subscription blob.
        answer_by_form: bytes of its whole answer, own tasks and view, for each form that it can
            use. A single entry, of any form, is an answer that cannot become smaller.
        protocol: bytes of everything else, see `protocol_bytes`.
    """

    subscription: int
    answer_by_form: Mapping[ViewForm, int]
    protocol: int = 0


def protocol_bytes(
    *,
    topics: Iterable[str],
    partitions: Iterable[TopicPartition],
    member_id: str,
    group_instance_id: str = "",
    rack: str = "",
) -> int:
    """An upper bound for the bytes of a member's entry besides the two blobs.

    The subscription of the consumer protocol (version 3) lists all topics, the owned partitions and
    the rack; its assignment lists the assigned partitions; the owned partitions are assumed to
    be the assigned ones. The group's record adds the member id, the client id in front of it, the
    instance id, the client's address and timeouts.

    Args:
        topics: that the member subscribes to.
        partitions: that it is assigned.
        member_id: given by the coordinator.
        group_instance_id: of a static member.
        rack: `client.rack`.
    """
    listed = sum(2 + _size(topic) for topic in set(topics))
    counts = Counter(partition.topic for partition in partitions)
    assigned = sum(2 + _size(topic) + 4 + 4 * count for topic, count in counts.items())
    subscription = 2 + 4 + listed + 4 + 4 + assigned + 4 + 2 + _size(rack)
    assignment = 2 + 4 + assigned + 4
    client_id = max(0, _size(member_id) - _MEMBER_SUFFIX)
    names = _size(member_id) + client_id + _size(group_instance_id) + _CLIENT_HOST
    return subscription + assignment + _MEMBER_FIXED + names


def fit_group(
    members: Mapping[str, MemberBytes], *, limit: int = GROUP_RECORD_LIMIT
) -> tuple[dict[str, ViewForm], str]:
    """Choose the largest forms that fit; O(members log members).

    Members start with the first form that they have an answer for. While the record is too large,
    full views are stepped down, then deltas, then references: within a form those that save most
    first, and among equals those with the greatest member id, only as many as it takes.

    Args:
        members: every member of the group, by id.
        limit: of the broker, in bytes.

    Returns:
        The form of the view by member id, and what was left out, with what to do about it; empty if
        nothing was.
    """
    forms = {name: min(members[name].answer_by_form, key=_LADDER.index) for name in sorted(members)}
    wanted = RECORD_BYTES + sum(
        member.subscription + member.protocol + member.answer_by_form[forms[name]]
        for name, member in members.items()
    )
    started, total = dict(forms), wanted
    for form in _LADDER[:-1]:
        if total <= limit:
            break
        total = _step_down(members, forms, form, total=total, limit=limit)
    if wanted <= limit:
        return forms, ""
    largest = max(members, key=lambda name: (members[name].subscription, name))
    largest_text = f"{members[largest].subscription:,} bytes, of {shown(largest)}"
    return forms, _sentence(started, forms, largest_text, wanted=wanted, total=total, limit=limit)


def _step_down(
    members: Mapping[str, MemberBytes],
    forms: dict[str, ViewForm],
    form: ViewForm,
    *,
    total: int,
    limit: int,
) -> int:
    """Move members from one form to the next that is smaller until the record fits."""
    steps = []
    for name in (name for name, given in forms.items() if given is form):
        answers = members[name].answer_by_form
        lower = _LADDER[_LADDER.index(form) + 1 :]
        better = [low for low in lower if low in answers and answers[low] < answers[form]]
        if better:
            steps.append((answers[form] - answers[better[0]], name, better[0]))
    for saved, name, low in sorted(steps, reverse=True):
        if total <= limit:
            break
        forms[name] = low
        total -= saved
    return total


def _sentence(
    started: Mapping[str, ViewForm],
    forms: Mapping[str, ViewForm],
    largest: str,
    *,
    wanted: int,
    total: int,
    limit: int,
) -> str:
    moves = sorted(
        (_LADDER.index(started[name]), _LADDER.index(forms[name]))
        for name in forms
        if forms[name] is not started[name]
    )
    steps = [
        f"{len(list(group)):,} of {len(forms):,} members get {_WORDS[_LADDER[low]]}"
        f" instead of {_WORDS[_LADDER[high]]}"
        for (high, low), group in groupby(moves)
    ]
    need = f"the group's record needs {wanted:,} bytes and the broker accepts {limit:,}"
    if total <= limit:
        return (
            f"{need}: {'; '.join(steps)}, which makes it {total:,};"
            " raise max.message.bytes of __consumer_offsets to route without gaps"
        )
    without = f"; {'; '.join(steps)}" if steps else ""
    return (
        f"{need}{without}, which leaves {total:,} bytes, still too many: the broker will reject"
        " the group; raise max.message.bytes of __consumer_offsets, or run fewer members; largest"
        f" subscription: {largest}"
    )


_WORDS = {
    ViewForm.FULL: "the full view",
    ViewForm.DELTA: "a delta",
    ViewForm.REFERENCE: "a reference",
    ViewForm.NONE: "no view",
}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
