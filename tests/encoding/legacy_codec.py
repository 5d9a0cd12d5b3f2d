"""A second codec, written by hand for versions 1, 2, 3, 6 and 11: the oracle of the first.

It shares no code with the package: plain structs, byte by byte, from and to canonical fields (see
`encoding/inspection/fields.py`). It is slow, does not check its input, and is simple enough to
compare with the layout by reading.
"""

import struct

VERSIONS = (1, 2, 3, 6, 11)
NEVER = 9223372036854775807


def i32(value):
    return struct.pack(">i", value)


def i64(value):
    return struct.pack(">q", value)


def units(text):
    """UTF-16 code units of a text, as numbers."""
    raw = text.encode("utf-16-be", "surrogatepass")
    return [raw[at] * 256 + raw[at + 1] for at in range(0, len(raw), 2)]


def of_units(numbers):
    raw = b"".join(bytes(divmod(number, 256)) for number in numbers)
    return raw.decode("utf-16-be", "surrogatepass")


def modified(text):
    """Modified UTF-8 with its 16-bit length."""
    out = bytearray()
    for unit in units(text):
        if 0 < unit < 0x80:
            out.append(unit)
        elif unit < 0x800:
            out += bytes((0xC0 + unit // 64, 0x80 + unit % 64))
        else:
            out += bytes((0xE0 + unit // 4096, 0x80 + unit // 64 % 64, 0x80 + unit % 64))
    return struct.pack(">H", len(out)) + bytes(out)


def utf8(text):
    raw = of_units(units(text)).encode("utf-8", "replace")
    return i32(len(raw)) + raw


def write_subscription(fields):
    version = fields["version"]
    out = i32(version)
    if version >= 3:
        out += i32(fields["latest_supported"])
    out += bytes.fromhex(fields["process_id"].replace("-", ""))
    sums = fields["task_offset_sums"]
    if version <= 6:
        for wanted in (True, False):
            tasks = [row for row in sums if (row[3] == -2) is wanted]
            out += i32(len(tasks))
            for subtopology, partition, _, _ in tasks:
                out += i32(subtopology) + i32(partition)
    if version >= 2:
        out += utf8(fields["user_endpoint"] or "")
    if version == 11:
        out += i32(len(sums))
        for subtopology, partition, name, offset_sum in sums:
            out += i32(subtopology) + i32(partition) + i64(offset_sum)
            raw = None if name is None else of_units(units(name)).encode("utf-8", "replace")
            out += b"\xff\xff" if raw is None else struct.pack(">h", len(raw)) + raw
        out += struct.pack(">b", fields["unique_field"]) + i32(fields["error_code"])
        out += i32(len(fields["client_tags"]))
        for key, tag in sorted(fields["client_tags"].items()):
            out += utf8(key) + utf8(tag)
    return out


def write_assignment(fields):
    version = fields["version"]
    out = i32(version)
    if version >= 3:
        out += i32(fields["commonly_supported"])
    out += i32(len(fields["active_tasks"]))
    for task in fields["active_tasks"]:
        out += _task(task, version)
    out += i32(len(fields["standby_tasks"]))
    for *task, partitions in fields["standby_tasks"]:
        out += _task(task, version) + _partitions(partitions)
    if version in (2, 3):
        out += i32(len(fields["partitions_by_host"]))
        for host, port, partitions in fields["partitions_by_host"]:
            out += modified(host) + i32(port) + _partitions(partitions)
    if version >= 6:
        out += _indexed(fields["partitions_by_host"], fields["standby_partitions_by_host"])
        out += i32(fields["error_code"])
    if version == 11:
        out += i64(fields["next_rebalance_ms"])
    return out


def _indexed(*maps):
    topics = sorted({topic for hosts in maps for row in hosts for topic, _ in row[2]})
    out = i32(len(topics))
    for index, topic in enumerate(topics):
        out += i32(index) + modified(topic)
    for hosts in maps:
        out += i32(len(hosts))
        for host, port, partitions in hosts:
            out += modified(host) + i32(port) + i32(len(partitions))
            for topic, partition in partitions:
                out += i32(topics.index(topic)) + i32(partition)
    return out


def _task(task, version):
    subtopology, partition, name = task
    out = i32(subtopology) + i32(partition)
    if version == 11:
        numbers = units(name or "")
        out += i32(len(numbers)) + b"".join(struct.pack(">H", number) for number in numbers)
    return out


def _partitions(partitions):
    out = i32(len(partitions))
    for topic, partition in partitions:
        out += modified(topic) + i32(partition)
    return out


class Cursor:
    """Reads bytes from its position on."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        piece = self.data[self.at : self.at + size]
        assert len(piece) == size
        self.at += size
        return piece

    def i32(self):
        return int.from_bytes(self.take(4), "big", signed=True)

    def i64(self):
        return int.from_bytes(self.take(8), "big", signed=True)

    def rows(self, read):
        return [read() for _ in range(self.i32())]

    def modified(self):
        raw, numbers, at = self.take(int.from_bytes(self.take(2), "big")), [], 0
        while at < len(raw):
            size = 1 if raw[at] < 0x80 else 2 if raw[at] < 0xE0 else 3
            number = raw[at] if size == 1 else raw[at] % (32 if size == 2 else 16)
            for byte in raw[at + 1 : at + size]:
                number = number * 64 + byte % 64
            numbers.append(number)
            at += size
        return of_units(numbers)

    def utf8(self):
        return self.take(self.i32()).decode()

    def nullable(self):
        size = int.from_bytes(self.take(2), "big", signed=True)
        return None if size < 0 else self.take(size).decode() or None

    def partition(self):
        return [self.modified(), self.i32()]


def read_subscription(data):
    cursor = Cursor(data)
    version = cursor.i32()
    supported = cursor.i32() if version >= 3 else -1
    raw = cursor.take(16).hex()
    process_id = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
    sums = []
    if version <= 6:
        for offset_sum in (-2, -3):
            tasks = cursor.rows(lambda: [cursor.i32(), cursor.i32()])
            sums += [[*task, None, offset_sum] for task in tasks]
    endpoint = cursor.utf8() or None if version >= 2 else None
    unique, error, tags = 0, 0, {}
    if version == 11:
        for row in cursor.rows(
            lambda: (cursor.i32(), cursor.i32(), cursor.i64(), cursor.nullable())
        ):
            sums.append([row[0], row[1], row[3], row[2]])
        unique = int.from_bytes(cursor.take(1), "big", signed=True)
        error = cursor.i32()
        tags = dict(cursor.rows(lambda: (cursor.utf8(), cursor.utf8())))
    sums.sort(key=lambda row: (row[0], row[1], row[2] or ""))
    return {
        "version": version,
        "latest_supported": supported,
        "process_id": process_id,
        "user_endpoint": endpoint,
        "prev_tasks": [row[:3] for row in sums if row[3] == -2],
        "standby_tasks": [row[:3] for row in sums if row[3] != -2],
        "task_offset_sums": sums,
        "unique_field": unique,
        "error_code": error,
        "client_tags": tags,
    }


def read_assignment(data):
    cursor = Cursor(data)
    version = cursor.i32()
    common = cursor.i32() if version >= 3 else -1

    def task():
        ids = [cursor.i32(), cursor.i32(), None]
        if version == 11:
            ids[2] = cursor.take(2 * cursor.i32()).decode("utf-16-be", "surrogatepass") or None
        return ids

    active = cursor.rows(task)
    standby = cursor.rows(lambda: [*task(), cursor.rows(cursor.partition)])
    hosts, standby_hosts, error, when = [], [], 0, NEVER
    if version in (2, 3):
        hosts = cursor.rows(
            lambda: [cursor.modified(), cursor.i32(), cursor.rows(cursor.partition)]
        )
    if version >= 6:
        topics = dict(cursor.rows(lambda: (cursor.i32(), cursor.modified())))

        def indexed():
            served = [cursor.modified(), cursor.i32()]
            return [*served, cursor.rows(lambda: [topics[cursor.i32()], cursor.i32()])]

        hosts, standby_hosts = cursor.rows(indexed), cursor.rows(indexed)
        error = cursor.i32()
    if version == 11:
        when = cursor.i64()
    return {
        "version": version,
        "commonly_supported": common,
        "active_tasks": active,
        "standby_tasks": standby,
        "partitions_by_host": hosts,
        "standby_partitions_by_host": standby_hosts,
        "error_code": error,
        "next_rebalance_ms": when,
    }
