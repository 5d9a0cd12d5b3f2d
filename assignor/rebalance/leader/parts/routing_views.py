"""The leader's part for the routing view: the smallest form of it that each native member can use.

A view is one value for the whole group, named by epoch and checksum. A member gets it in full, as a
delta against the view that it reports, or as a reference to that view. The leader keeps the epoch
while the content stays, so that it sends no member a view that the member holds already.
"""

from collections.abc import Mapping
from dataclasses import replace

from assignor.rebalance.endpoints import parse_endpoint
from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.placements import Placement
from encoding import (
    HostInfo,
    NativeAssignment,
    View,
    ViewForm,
    ViewForms,
    ViewReference,
    build_view,
    choose_view_form,
    encode_view_forms,
)

HIGHEST_REPORTED = 2**61


def view_fields(
    held_view: View | None,
    natives: Mapping[str, ReadMember],
    versions: Mapping[str, int],
    placement: Placement,
    sizes: tuple[int, ...],
) -> dict[str, Mapping[str, bytes]]:
    """Return the field of each native answer that has the group's view, by member id.

    Args:
        held_view: the view that this leader got as a member, for deltas against it.
        natives: members that read views, by id.
        versions: member id -> version of its native body; one entry for every native answer.
        placement: of the group.
        sizes: tasks of each subtopology.
    """
    held = {name: view_to_refer_to(member) for name, member in natives.items()}
    reported = [view for view in held.values() if view is not None]
    forms = _view_forms(placement, sizes, reported, held_view) if held else None
    if forms is None:
        return {}
    best = {name: _best_form(forms, held[name], version) for name, version in versions.items()}
    return {
        name: {f"view_{form.value}": forms.bytes_of(form, held[name])}
        for name, form in best.items()
    }


def _view_forms(
    placement: Placement,
    sizes: tuple[int, ...],
    reported: list[ViewReference],
    held_view: View | None,
) -> ViewForms | None:
    """Return the view in all its forms; None if no member serves queries.

    Its epoch stays while its content does; a new one is above all that members report.
    """
    if not placement.endpoint_by_member:
        return None
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    active: dict[HostInfo, list[int]] = {}
    standby: dict[HostInfo, list[int]] = {}
    for member, endpoint in sorted(placement.endpoint_by_member.items()):
        host = parse_endpoint(endpoint)
        if host is None:
            continue
        for by_member, found in (
            (placement.active_by_member, active),
            (placement.standby_by_member, standby),
        ):
            numbers = found.setdefault(host, [])
            numbers += [starts[t.subtopology] + t.partition for t in by_member.get(member, ())]
    epoch = -1 if held_view is None else held_view.epoch
    view = build_view(
        epoch=max(epoch, 0), sizes=sizes, active=active, standby=standby, previous=held_view
    )
    if held_view is not None and view == held_view:
        view = held_view
    else:
        # A member may report any number: epochs of the highest half are ignored.
        known = [named.epoch for named in reported if named.epoch < HIGHEST_REPORTED]
        view = replace(view, epoch=max(epoch, *known, -1) + 1)
    return encode_view_forms(view, [held_view] if held_view is not None and reported else [])


def _best_form(forms: ViewForms, held: ViewReference | None, version: int) -> ViewForm:
    """The smallest form that a member can use and that the layout of its answer has."""
    best = choose_view_form(forms, held)
    has_field = NativeAssignment(version=version).carries(f"view_{best.value}")
    return best if has_field else ViewForm.FULL


def view_to_refer_to(member: ReadMember) -> ViewReference | None:
    """Return the view that an answer may refer to.

    None for a static member, and for one whose layout cannot tell: after a restart it gets the same
    bytes again and no longer holds the view that they would refer to.
    """
    native = member.native
    if native is None or native.view_epoch < 0:
        return None
    is_dynamic = native.instance_id is None and native.carries("instance_id")
    return ViewReference(native.view_epoch, native.view_checksum) if is_dynamic else None
