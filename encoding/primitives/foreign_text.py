"""Text of a peer, a file or a user: escaped for terminals, logs and reports; valid or not."""

__all__ = ["has_half_pair", "shown"]

SHOWN_CHARACTERS = 256


def has_half_pair(text: str) -> bool:
    r"""Return whether a text has half of a surrogate pair, which UTF-8 cannot encode.

    Python reads bytes that are no UTF-8 as such texts: arguments of a command, names of files.

    >>> has_half_pair("orders\udcff")
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def shown(text: object, *, limit: int | None = SHOWN_CHARACTERS) -> str:
    r"""Return a foreign text on one line, with everything unprintable escaped.

    Controls, escape sequences, newlines, bidirectional and zero-width marks, surrogates and unknown
    characters become `\n`, `\x1b`, `\u202e`, and so on, so that no text can forge a line, move a
    cursor or reverse the text after it.

    Args:
        text: a text, or any other value, which `str` converts.
        limit: characters to show; a longer text is cut, followed by its length. None shows all.

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
