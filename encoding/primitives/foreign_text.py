"""Text of a peer, a file or a user: escaped for terminals, logs and reports; valid or not."""

import shlex

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


def shell_word(text: str) -> str:
    r"""Return a text as one printable word of a shell command, which the shell reads as this text.

    A text with unprintable characters is written as `$'...'` of POSIX 2024, which bash, ksh and zsh
    have had for decades: its bytes in octal.

    >>> shell_word("orders"), shell_word("a b"), shell_word("a'\nb")
    ('orders', "'a b'", "$'a\\'\\012b'")

    Raises:
        ValueError: it has half a surrogate pair, which no bytes stand for.
    """
    if text.isprintable():
        return shlex.quote(text)
    escaped = (f"\\{c}" if c in "\\'" else c if c.isprintable() else _octal(c) for c in text)
    return f"$'{''.join(escaped)}'"


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
