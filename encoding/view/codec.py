"""Encode and decode a full view, and a reference to a view.

::

    full       1 | epoch | sizes | host table | ranks | active column | standby columns | checksum
    reference  3 | epoch | checksum

Numbers are varints, checksums 4 bytes. The host table is front-coded from both ends: each host has
the number of bytes that it shares with the previous one at its start and at its end, for names with
a counter in the middle (`app-17.prod.example`). A column is bit-packed, `ceil(log2(hosts + 1))`
bits per task with 0 for none; a standby column with few copies lists its tasks and hosts instead.

A reader allocates at most `CELLS_PER_BYTE` owners per byte of input, and `CELLS_MAX` in total. A
reader that knows the sizes of its topology refuses views with other sizes.
"""

from collections.abc import Sequence

import numpy as np

from encoding.native import MAX_SUBTOPOLOGIES
from encoding.primitives import DecodeError, EncodeError, HostInfo, encode_varint
from encoding.view.bits import (
    VIEW_VERSION,
    Int64Column,
    Owners,
    ViewReader,
    bits_for,
    pack_bits,
    write_ascending,
)
from encoding.view.columns import (
    CELLS_MAX,
    HOST_BYTES_MAX,
    HOSTS_MAX,
    NO_HOST,
    STANDBY_RANKS_MAX,
    View,
    ViewReference,
    view_checksum,
)

FULL, DELTA, REFERENCE = 1, 2, 3
CELLS_PER_BYTE = 16
_NAMES = {FULL: "a full view", DELTA: "a delta", REFERENCE: "a reference"}
_DENSE, _SPARSE = 0, 1
_HOST_MINIMUM = 4  # least bytes of a host: three lengths and a port
_PORT_MAX = 65_535


def encode_view(view: View) -> bytes:
    """Bytes of a full view, equal for equal views. Encode once for all members."""
    values = len(view.hosts) + 1
    out = bytearray([FULL])
    out += encode_varint(view.epoch)
    write_sizes(out, view.sizes)
    write_hosts(out, view.hosts)
    out += encode_varint(view.ranks)
    out += pack_bits(view.active + 1, bits_for(values))
    dense = [bytes([_DENSE]) + pack_bits(rank + 1, bits_for(values)) for rank in view.standbys]
    columns = [
        min(full, _sparse(rank, values), key=len)
        for full, rank in zip(dense, view.standbys, strict=True)
    ]
    # A reader limits owners per byte of input; dense columns are always within the limit.
    if (1 + view.ranks) * view.tasks > CELLS_PER_BYTE * (len(out) + sum(map(len, columns))):
        columns = dense
    out += b"".join(columns)
    write_checksum(out, view_checksum(view))
    return bytes(out)


def decode_view(data: bytes, sizes: Sequence[int] | None = None) -> View:
    """The view in bytes of `encode_view`; time and memory are linear in the bytes.

    Args:
        data: bytes of a leader.
        sizes: tasks of each subtopology, if the reader knows them; the view must have these sizes
            or the first of them, otherwise it is refused before the rest is read.

    Raises:
        DecodeError: any invalid input; nothing else is raised.
    """
    read = ViewReader(data)
    read_form(read, FULL)
    epoch = read.varint("the epoch")
    found = read_sizes(read, sizes)
    tasks = sum(found)
    hosts = read_hosts(read)
    values = len(hosts) + 1
    ranks = read.varint("the number of standby ranks", min(STANDBY_RANKS_MAX, len(hosts)))
    active = read.packed(tasks, values, "the column of active owners") - 1
    check_cells(read, tasks, ranks, CELLS_PER_BYTE * len(read.data))
    standbys = np.full((ranks, tasks), NO_HOST, np.int32)
    for rank in range(ranks):
        if read.varint("the form of a standby column", _SPARSE) == _DENSE:
            standbys[rank] = read.packed(tasks, values, "a column of standby owners") - 1
        else:
            places, owners = read_sparse(read, tasks, values, "standby")
            standbys[rank, places] = owners
    checksum = read_checksum(read)
    read.end()
    view = checked_view(read, epoch=epoch, sizes=found, hosts=hosts, owners=(active, standbys))
    if view_checksum(view) != checksum:
        raise read.error("the checksum is wrong; the view was damaged on its way")
    return view


def encode_reference(epoch: int, checksum: int) -> bytes:
    """Bytes of a reference: epoch and checksum of a view."""
    out = bytearray([REFERENCE])
    out += encode_varint(epoch)
    write_checksum(out, checksum)
    return bytes(out)


def decode_reference(data: bytes) -> ViewReference:
    """The reference in bytes of `encode_reference`.

    Raises:
        DecodeError: any invalid input; nothing else is raised.
    """
    read = ViewReader(data)
    read_form(read, REFERENCE)
    reference = ViewReference(read.varint("the epoch"), read_checksum(read))
    read.end()
    return reference


def checked_view(
    read: ViewReader,
    *,
    epoch: int,
    sizes: tuple[int, ...],
    hosts: tuple[HostInfo, ...],
    owners: tuple[Owners, Owners],
) -> View:
    """A view from a peer's fields; invalid fields raise `DecodeError` instead of `EncodeError`."""
    try:
        return View(epoch=epoch, sizes=sizes, hosts=hosts, active=owners[0], standbys=owners[1])
    except EncodeError as error:
        raise read.error(f"invalid view: {error}") from None


def write_checksum(out: bytearray, checksum: int) -> None:
    """Append the 4 bytes of a checksum."""
    out += checksum.to_bytes(4)


def read_checksum(read: ViewReader) -> int:
    """The checksum at the cursor, 4 bytes."""
    return int.from_bytes(read.take(4, "a checksum"))


def read_form(read: ViewReader, wanted: int) -> None:
    """Check the first byte, which is the form of the view."""
    form = read.varint("the form of the view")
    if form != wanted:
        found = _NAMES.get(form, f"form {form}, which this reader does not know")
        raise DecodeError(
            f"{_NAMES[wanted]} was expected, this is {found}",
            offset=0,
            version=VIEW_VERSION,
            available=len(read.data),
        )


def write_sizes(out: bytearray, sizes: Sequence[int]) -> None:
    """Append the sizes of all subtopologies."""
    out += encode_varint(len(sizes))
    for size in sizes:
        out += encode_varint(size)


def read_sizes(read: ViewReader, known: Sequence[int] | None) -> tuple[int, ...]:
    """Sizes of all subtopologies; their sum is not checked against the bytes yet.

    With `known` sizes, they must be the first of these.
    """
    limit = MAX_SUBTOPOLOGIES if known is None else len(known)
    count = read.varint("the number of subtopologies", min(limit, read.left))
    sizes = tuple(read.varint("the size of a subtopology") for _ in range(count))
    if known is not None:
        check_sizes(read, sizes, known)
    return sizes


def check_sizes(read: ViewReader, sizes: Sequence[int], known: Sequence[int]) -> None:
    """Check that sizes are the first of the known ones."""
    if tuple(sizes) != tuple(known[: len(sizes)]):
        raise read.error("the view has other tasks than the reader's topology")


def check_cells(read: ViewReader, tasks: int, ranks: int, limit: int) -> None:
    """Check that the number of owners of a view is within the limits."""
    if (1 + ranks) * tasks > min(limit, CELLS_MAX):
        raise read.error(f"{ranks} standby ranks of {tasks} tasks are too many for these bytes")


def write_hosts(out: bytearray, hosts: Sequence[HostInfo]) -> None:
    """Append hosts, front-coded."""
    out += encode_varint(len(hosts))
    before, port_before = b"", 0
    for host, port in hosts:
        name = host.encode()
        head = _shared(before, name)
        tail = _shared(before[head:][::-1], name[head:][::-1])
        middle = name[head : len(name) - tail]
        for number in (head, tail, len(middle)):
            out += encode_varint(number)
        out += middle
        step = port - port_before
        out += encode_varint(2 * step if step >= 0 else -2 * step - 1)
        before, port_before = name, port


def read_hosts(read: ViewReader) -> tuple[HostInfo, ...]:
    """Hosts in bytes of `write_hosts`; `View` checks that they are sorted."""
    count = read.varint("the number of hosts", min(HOSTS_MAX, read.left // _HOST_MINIMUM))
    hosts: list[HostInfo] = []
    before, port = b"", 0
    for _ in range(count):
        head = read.varint("the shared start of a host", len(before))
        tail = read.varint("the shared end of a host", len(before) - head)
        size = read.varint("the length of a host", HOST_BYTES_MAX - head - tail)
        before = before[:head] + read.take(size, "a host") + before[len(before) - tail :]
        step = read.varint("a port", 2 * _PORT_MAX)
        port += step >> 1 if not step & 1 else -(step >> 1) - 1
        try:
            hosts.append(HostInfo(before.decode(), port))
        except UnicodeDecodeError:
            raise read.error("a host is not UTF-8") from None
    return tuple(hosts)


def write_sparse(out: bytearray, places: Int64Column, owners: Owners, values: int) -> None:
    """Append (task, owner) pairs, sorted by task; owners are -1 to `values` - 2."""
    write_ascending(out, places)
    out += pack_bits(owners + 1, bits_for(values))


def read_sparse(read: ViewReader, tasks: int, values: int, what: str) -> tuple[Int64Column, Owners]:
    """Columns (task, owner) in bytes of `write_sparse`."""
    places = read.ascending(f"the tasks of {what} owners", tasks)
    return places, read.packed(len(places), values, f"{what} owners") - 1


def _shared(left: bytes, right: bytes) -> int:
    """Number of equal bytes at the start of two names."""
    for index, (byte, other) in enumerate(zip(left, right, strict=False)):
        if byte != other:
            return index
    return min(len(left), len(right))


def _sparse(rank: Owners, values: int) -> bytes:
    out = bytearray([_SPARSE])
    places = np.flatnonzero(rank != NO_HOST)
    write_sparse(out, places.astype(np.int64), rank[places], values)
    return bytes(out)
