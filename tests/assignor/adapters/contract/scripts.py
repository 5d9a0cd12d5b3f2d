"""Scripts: what happens to a topic, and what an application calls meanwhile; no expected results.

A step is a name with arguments. Those of a topic are methods of `Cluster`; the others are calls of
the client:

- `assign(numbers)`: read these partitions, as `assign` of the client;
- `take(most=None)`: poll until there is a record or an error, or nothing comes;
- `seek(number, offset)`, `pause(number)`, `resume(number)`, `commit()`.
"""

from typing import NamedTuple


class Step(NamedTuple):
    """One step of a script."""

    name: str
    arguments: tuple


def _step(name):
    return lambda *arguments: Step(name, arguments)


assign, take, seek = _step("assign"), _step("take"), _step("seek")
pause, resume, commit = _step("pause"), _step("resume"), _step("commit")
write, damage, delete_records = _step("write"), _step("damage"), _step("delete_records")
write_transaction = _step("write_transaction")
delete_topic, make_anew = _step("delete_topic"), _step("make_anew")
fail_fetch, refuse_fetch = _step("fail_fetch"), _step("refuse_fetch")
A, B, C, POISONED = b"a", b"b", b"c", b"poison"
AUTHORIZATION, NOT_LEADER, UNKNOWN = 29, 6, -1

SCRIPTS = {
    "records": [write(0, A, B, C), assign(0), take(), write(0, A), take(), take()],
    "records in parts": [write(0, A, B, C), assign(0), take(2), take(2), take(2)],
    "two partitions": [write(0, A, B), write(1, C), assign(0, 1), take(), take()],
    "two partitions in parts": [
        write(0, A, B),
        write(1, C),
        assign(0, 1),
        take(1),
        take(1),
        take(),
    ],
    "seek back": [write(0, A, B, C), assign(0), take(), seek(0, 1), take(), seek(0, 0), take(1)],
    "seek in a part": [write(0, A, B, C), assign(0), take(1), seek(0, 0), take(), take()],
    "seek on": [write(0, A, B, C), assign(0), take(1), seek(0, 2), take()],
    "pause": [
        write(0, A),
        write(1, B),
        assign(0, 1),
        take(),
        pause(0),
        write(0, C),
        take(),
        write(1, C),
        take(),
        resume(0),
        take(),
    ],
    "pause in a part": [write(0, A, B, C), assign(0), take(1), pause(0), take(), resume(0), take()],
    "pause and seek": [
        write(0, A, B, C),
        assign(0),
        take(2),
        pause(0),
        seek(0, 1),
        resume(0),
        take(),
    ],
    "give up one": [
        write(0, A, B),
        write(1, C),
        assign(0, 1),
        take(),
        assign(1),
        write(0, A),
        write(1, A),
        take(),
    ],
    "give up one in a part": [
        write(0, A, B, C),
        write(1, C),
        assign(0),
        take(1),
        assign(1),
        take(),
    ],
    "give up and get back": [
        write(0, A, B),
        assign(0),
        take(),
        commit(),
        assign(1),
        write(0, C),
        take(),
        assign(0),
        take(),
    ],
    "begin at the commit": [
        write(0, A, B, C),
        assign(0),
        take(2),
        commit(),
        assign(1),
        assign(0),
        take(),
    ],
    "lost and reset": [
        write(0, A, B, C),
        assign(0),
        take(1),
        seek(0, 0),
        delete_records(0, 2),
        take(),
        seek(0, 9),
        take(),
    ],
    "anew and shorter": [
        write(0, A, B, C),
        assign(0),
        take(),
        make_anew(A),
        take(),
        seek(0, 0),
        take(),
    ],
    "fetch fails once": [write(0, A), assign(0), take(), fail_fetch(1), write(0, B), take()],
    "fetch refused once": [
        write(0, A),
        assign(0),
        take(),
        refuse_fetch(0, NOT_LEADER, 1),
        write(0, B),
        take(),
    ],
    "no right": [
        write(0, A),
        assign(0),
        take(),
        refuse_fetch(0, AUTHORIZATION, 1),
        write(0, B),
        take(),
        take(),
    ],
    "no right for long": [
        write(0, A),
        refuse_fetch(0, AUTHORIZATION, 3),
        assign(0),
        take(),
        take(),
        take(),
        take(),
    ],
    "no right to one of two": [
        write(0, A),
        write(1, A),
        refuse_fetch(0, AUTHORIZATION, 1),
        assign(0, 1),
        take(),
        take(),
    ],
    "unknown error": [write(0, A), refuse_fetch(0, UNKNOWN, 2), assign(0), take(), take(), take()],
    "deleted": [write(0, A), write(1, A), assign(0, 1), take(), delete_topic(), take()],
    "deleted and made anew": [
        write(0, A, B),
        assign(0),
        take(),
        delete_topic(),
        take(),
        make_anew(A, B, C),
        take(),
    ],
}
SCRIPTS |= {
    "transaction": [write_transaction(0, A), assign(0), take(), take(), write(0, B), take()],
    "transaction behind records": [
        write(0, A),
        assign(0),
        take(),
        write_transaction(0, B),
        take(),
        take(),
        seek(0, 2),
        take(),
    ],
}
# With `auto_offset_reset="none"`; the others with "earliest".
WITHOUT_RESET = {
    "lost to retention": [
        write(0, A, B, C),
        assign(0),
        seek(0, 0),
        take(1),
        seek(0, 0),
        delete_records(0, 2),
        take(),
        take(),
        seek(0, 2),
        take(),
    ],
    "beyond the end": [
        write(0, A, B),
        assign(0),
        seek(0, 0),
        take(),
        seek(0, 7),
        take(),
        take(),
        seek(0, 1),
        take(),
    ],
    "no offset": [
        write(0, A),
        write(1, B),
        assign(0),
        take(),
        seek(0, 0),
        take(),
        assign(0, 1),
        take(),
    ],
}
for _damage in ("checksum", "codec"):
    SCRIPTS |= {
        f"{_damage} first": [damage(0, _damage), write(0, A), assign(0), take(), take()],
        f"{_damage} second": [
            write(0, A),
            damage(0, _damage),
            write(0, B),
            assign(0),
            take(),
            take(),
            take(),
        ],
        f"{_damage} passed over": [
            write(0, A),
            damage(0, _damage),
            write(0, B),
            assign(0),
            take(),
            take(),
            seek(0, 2),
            take(),
        ],
        f"{_damage} beside another partition": [
            write(0, A),
            damage(0, _damage),
            write(1, A, B, C),
            assign(0, 1),
            take(),
            take(),
            write(1, A),
            take(),
            take(),
        ],
        f"{_damage} in a part": [
            write(0, A, B),
            damage(0, _damage),
            assign(0),
            take(1),
            take(1),
            take(),
            take(),
        ],
        f"{_damage} of a paused partition": [
            write(0, A),
            damage(0, _damage),
            write(1, A),
            assign(0, 1),
            take(1),
            pause(0),
            take(),
            write(1, B),
            take(),
            resume(0),
            take(),
            take(),
        ],
        f"{_damage} given up": [
            write(0, A),
            damage(0, _damage),
            write(1, A),
            assign(0),
            take(),
            take(),
            assign(1),
            take(),
        ],
    }
# Of clients that deserialize themselves.
DESERIALIZING = {
    "poison first": [write(0, POISONED, A), assign(0), take(), take()],
    "poison in the middle": [
        write(0, A, POISONED, B),
        assign(0),
        take(),
        take(),
        seek(0, 2),
        take(),
    ],
    "poison beside another partition": [
        write(0, A, POISONED),
        write(1, A, B, C),
        assign(0, 1),
        take(),
        take(),
        write(1, A),
        take(),
    ],
}
# Which partition comes first makes a difference.
BY_ORDER = frozenset({"two partitions in parts"}) | {
    f"{damage} of a paused partition" for damage in ("checksum", "codec")
}
