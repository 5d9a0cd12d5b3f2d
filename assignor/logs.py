"""Loggers whose records are printable lines, whatever peers and brokers put into a sentence."""

import logging
from contextlib import suppress
from typing import Final

from encoding import shown

LINE_LIMIT: Final = 4000
"""Characters of a line of the log."""

_TRACEBACK: Final = logging.Formatter()


def line_logger(name: str) -> logging.Logger:
    """Return the logger of a module; each of its records becomes one printable line.

    What is unprintable in a message is escaped (`encoding.shown`), and a message is cut after
    `LINE_LIMIT` characters. A traceback has lines of its own, all indented. So no line of the log
    begins with foreign text.

    Args:
        name: `__name__` of the module.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_made_a_line)
    return logger


def _made_a_line(record: logging.LogRecord) -> bool:
    """Replace message and traceback of a record by printable ones; every record passes."""
    with suppress(Exception):  # an argument without a text: the handler reports it
        record.msg, record.args = shown(record.getMessage(), limit=LINE_LIMIT), ()
        if record.exc_info and record.exc_info[0] is not None:
            lines = _TRACEBACK.formatException(record.exc_info).splitlines()
            record.exc_text = "\n".join(f"    {shown(line, limit=LINE_LIMIT)}" for line in lines)
    return True
