"""Deltas between views, and the choice of a view's form for a member.

::

    delta  2 | old epoch | old checksum | epoch | sizes | removed hosts | added hosts | ranks
             | active owners of new tasks | changes of the active column, of each standby column
             | checksum of the result

First the old view is renumbered: owners on removed hosts and owners of new tasks become none. Then
the delta lists all remaining differences. A delta names the old view and the result by epoch and
checksum; if either does not match, it is refused, so no member routes by an invalid view.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encoding.primitives import DecodeError, HostInfo, ViewForm, encode_varint
from encoding.view.bits import (
    VIEW_VERSION,
    Int64Column,
    Owners,
    ViewReader,
    bits_for,
    pack_bits,
    write_ascending,
)
from encoding.view.codec import (
    CELLS_PER_BYTE,
    DELTA,
    check_cells,
    check_sizes,
    checked_view,
    encode_reference,
    encode_view,
    read_checksum,
    read_form,
    read_hosts,
    read_sizes,
    read_sparse,
    write_checksum,
    write_hosts,
    write_sizes,
    write_sparse,
)
from encoding.view.columns import (
    NO_HOST,
    STANDBY_RANKS_MAX,
    View,
    ViewReference,
    carry,
    view_checksum,
    view_reference,
)


class ViewMismatch(DecodeError):
    """A delta does not fit the current view, or its result is not the named view.

    Nothing was applied. Report the current view in the next subscription; the leader then sends a
    delta against it, or the full view.

    Attributes:
        held: reference of the current view, or of the result if that differs.
        named: reference in the delta.
    """

    def __init__(
        self, what: str, *, held: ViewReference, named: ViewReference, offset: int, available: int
    ) -> None:
        self.held = held
        self.named = named
        super().__init__(
            f"{what} (epoch {held.epoch}, checksum {held.checksum:08x} against epoch"
            f" {named.epoch}, checksum {named.checksum:08x})",
            offset=offset,
            version=VIEW_VERSION,
            available=available,
        )


def encode_delta(old: View, new: View) -> bytes:
    """Bytes of the delta from `old` to `new`; a few per changed owner, host, and size."""
    values = len(new.hosts) + 1
    out = bytearray([DELTA])
    out += encode_varint(old.epoch)
    write_checksum(out, view_checksum(old))
    out += encode_varint(new.epoch)
    out.append(new.sizes != old.sizes)
    if new.sizes != old.sizes:
        write_sizes(out, new.sizes)
    known, wanted = set(old.hosts), set(new.hosts)
    gone = [index for index, host in enumerate(old.hosts) if host not in wanted]
    write_ascending(out, np.array(gone, np.int64))
    write_hosts(out, [host for host in new.hosts if host not in known])
    out += encode_varint(new.ranks)
    grown = _grown(old.sizes, new.sizes)
    out += pack_bits(new.active[grown] + 1, bits_for(values))
    moved = _moved(old, sizes=new.sizes, hosts=new.hosts, ranks=new.ranks)
    moved[0, grown] = new.active[grown]
    for before, after in zip(moved, new.owners(), strict=True):
        places = np.flatnonzero(before != after).astype(np.int64)
        write_sparse(out, places, after[places], values)
    write_checksum(out, view_checksum(new))
    return bytes(out)


def apply_delta(old: View, data: bytes, sizes: Sequence[int] | None = None) -> View:
    """The new view; time and memory are linear in the old view and the bytes.

    Args:
        old: the current view.
        data: bytes of a leader.
        sizes: as in `decode_view`.

    Raises:
        ViewMismatch: the delta was made against another view, or its result is not the named view.
        DecodeError: any other invalid input; nothing else is raised.
    """
    read = ViewReader(data)
    read_form(read, DELTA)
    base = ViewReference(read.varint("the old epoch"), read_checksum(read))
    held = view_reference(old)
    if base != held:
        raise _mismatch(read, "the delta was made against another view", held, base)
    epoch = read.varint("the epoch")
    found = read_sizes(read, sizes) if read.varint("whether sizes changed", 1) else old.sizes
    if sizes is not None:
        check_sizes(read, found, sizes)
    hosts = _read_hosts(read, old.hosts)
    values = len(hosts) + 1
    ranks = read.varint("the number of standby ranks", min(STANDBY_RANKS_MAX, len(hosts)))
    new_tasks = sum(max(0, size - before) for size, before in _paired(found, old.sizes))
    paid = CELLS_PER_BYTE * len(read.data) + (1 + STANDBY_RANKS_MAX) * old.tasks
    check_cells(read, sum(found), ranks, paid)
    fresh = read.packed(new_tasks, values, "the owners of new tasks") - 1
    moved = _moved(old, sizes=found, hosts=hosts, ranks=ranks)
    if new_tasks:
        moved[0, _grown(old.sizes, found)] = fresh
    for column in moved:
        places, owners = read_sparse(read, moved.shape[1], values, "changed")
        column[places] = owners
    promised = ViewReference(epoch, read_checksum(read))
    read.end()
    columns = (moved[0], moved[1:])
    view = checked_view(read, epoch=epoch, sizes=found, hosts=hosts, owners=columns)
    result = view_reference(view)
    if result != promised:
        raise _mismatch(read, "the result of the delta is not the view it names", result, promised)
    return view


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewForms:
    """One view in all forms, encoded once for the whole group.

    Attributes:
        name: epoch and checksum of the view.
        full, reference: its bytes in these forms.
        delta_by_held: reference of an older view -> the delta against it, if that is smaller than
            the full view.
    """

    name: ViewReference
    full: bytes
    reference: bytes
    delta_by_held: Mapping[ViewReference, bytes]

    def bytes_of(self, form: ViewForm, held: ViewReference | None) -> bytes:
        """Bytes of one form for a member that holds `held`; empty for `NONE`.

        Raises:
            KeyError: there is no delta against `held`.
        """
        match form:
            case ViewForm.FULL:
                return self.full
            case ViewForm.DELTA:
                if held is None:
                    raise KeyError(held)
                return self.delta_by_held[held]
            case ViewForm.REFERENCE:
                return self.reference
            case ViewForm.NONE:
                return b""


def encode_view_forms(view: View, older: Iterable[View] = ()) -> ViewForms:
    """Encode a view in every form, with a delta against each of the older ones."""
    name, full = view_reference(view), encode_view(view)
    deltas = {view_reference(old): encode_delta(old, view) for old in older}
    return ViewForms(
        name=name,
        full=full,
        reference=encode_reference(*name),
        delta_by_held={
            held: delta for held, delta in deltas.items() if held != name and len(delta) < len(full)
        },
    )


def choose_view_form(forms: ViewForms, held: ViewReference | None) -> ViewForm:
    """The smallest form that gives the member the whole view.

    Args:
        forms: the view of the group.
        held: reference of the view that the member reported, None if it has none.
    """
    if held == forms.name:
        return ViewForm.REFERENCE
    if held in forms.delta_by_held:
        return ViewForm.DELTA
    return ViewForm.FULL


def _mismatch(
    read: ViewReader, what: str, held: ViewReference, named: ViewReference
) -> ViewMismatch:
    return ViewMismatch(what, held=held, named=named, offset=read.offset, available=len(read.data))


def _read_hosts(read: ViewReader, old: tuple[HostInfo, ...]) -> tuple[HostInfo, ...]:
    removed = set(read.ascending("the removed hosts", len(old)).tolist())
    added = read_hosts(read)
    if not removed and not added:
        return old
    return tuple(sorted((*(h for i, h in enumerate(old) if i not in removed), *added)))


def _paired(new: tuple[int, ...], old: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    """(new size, old size) of each subtopology of the new view; the old size of a new one is 0."""
    return zip(new, (*old, *(0 for _ in new[len(old) :])), strict=False)


def _grown(old: tuple[int, ...], new: tuple[int, ...]) -> Int64Column:
    """Numbers in the new view of the tasks that the old view does not have."""
    if old == new:
        return np.empty(0, np.int64)
    parts, start = [np.empty(0, np.int64)], 0
    for size, before in _paired(new, old):
        parts.append(np.arange(start + min(size, before), start + size))
        start += size
    return np.concatenate(parts)


def _moved(old: View, *, sizes: tuple[int, ...], hosts: tuple[HostInfo, ...], ranks: int) -> Owners:
    """Columns [1 + R, T] of the old view with the new host and task numbers."""
    index_by_host = {host: index for index, host in enumerate(hosts)}
    # Index -1 (no host) selects the extra last entry, which is no host again.
    renumbered = [index_by_host.get(host, NO_HOST) for host in old.hosts] + [NO_HOST]
    owners = np.array(renumbered, np.int32)[old.owners()[: 1 + ranks]]
    moved: Owners = np.full((1 + ranks, sum(sizes)), NO_HOST, np.int32)
    moved[: len(owners)] = carry(owners, old.sizes, sizes, sum(sizes))
    return moved
