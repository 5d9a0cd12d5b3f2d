"""Text of a peer, a file or a user as a terminal, a log or a report may show it."""

__all__ = ["shown"]

SHOWN_CHARACTERS = 256


def shown(text: object, *, limit: int | None = SHOWN_CHARACTERS) -> str:
    r"""Return a foreign text on one line, with everything unprintable escaped.

    Controls, escape sequences, newlines, bidirectional and zero-width marks, surrogates and unknown
    characters become `\n`, `\x1b`, `\u202e`, and so on, so that no text can forge a line, move a
    cursor or turn what follows around.

    Args:
        text: anything; other values than text are shown as `str` has them.
        limit: characters to show; a longer text is cut, and says how long it was. None shows all.

    >>> shown("orders\n2026-01-01 ERROR all is lost")
    'orders\\n2026-01-01 ERROR all is lost'
    """
    whole = str(text)
    head = whole if limit is None else whole[:limit]
    if not head.isprintable():
        head = "".join(c if c.isprintable() else _escaped(c) for c in head)
    if limit is not None and len(whole) > limit:
        return f"{head}... ({len(whole):,} characters)"
    return head


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
