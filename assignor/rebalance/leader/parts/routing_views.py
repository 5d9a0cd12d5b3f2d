"""The leader's part for the routing view: the smallest form of it that each native member can use.

A view is one value for the whole group (`assignor.rebalance.routing_view`). A member gets it in
full, as a delta against the view that it reports, or as a reference to that view.
"""

from collections.abc import Mapping

from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.routing_view import group_view
from encoding import (
    NativeAssignment,
    View,
    ViewForm,
    ViewForms,
    ViewReference,
    choose_view_form,
    encode_view_forms,
)


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
    """Return the view in all its forms; None if no member serves queries."""
    view = group_view(
        endpoint_by_member=placement.endpoint_by_member,
        active_by_member=placement.active_by_member,
        standby_by_member=placement.standby_by_member,
        sizes=sizes,
        previous=held_view,
        reported=reported,
    )
    if view is None:
        return None
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
