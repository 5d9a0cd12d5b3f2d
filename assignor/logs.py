"""Loggers whose records are printable lines, even with text from other members and brokers."""

import logging
from contextlib import suppress
from typing import Final

from encoding import shown

LINE_LIMIT: Final = 4000
"""Most characters of a log line."""

_TRACEBACK: Final = logging.Formatter()
_NO_OUTPUT: Final = logging.NullHandler()


def line_logger(name: str) -> logging.Logger:
    """Return the logger of a module; each of its messages becomes one printable line.

    Unprintable characters are escaped (`encoding.shown`), and a message is cut after `LINE_LIMIT`
    characters. Lines of a traceback are indented. So no log line begins with untrusted text.

    Args:
        name: `__name__` of the module.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_made_a_line)
    return logger


def drop_unhandled_records() -> None:
    """Let records that no handler takes be dropped, instead of printed to stderr."""
    logging.getLogger(__name__.partition(".")[0]).addHandler(_NO_OUTPUT)


def _made_a_line(record: logging.LogRecord) -> bool:
    """Make message and traceback of a record printable; return True, so that it is logged."""
    with suppress(Exception):  # an argument that cannot be formatted: the handler reports it
        record.msg, record.args = shown(record.getMessage(), limit=LINE_LIMIT), ()
        if record.exc_info and record.exc_info[0] is not None:
            lines = _TRACEBACK.formatException(record.exc_info).splitlines()
            record.exc_text = "\n".join(f"    {shown(line, limit=LINE_LIMIT)}" for line in lines)
    return True
