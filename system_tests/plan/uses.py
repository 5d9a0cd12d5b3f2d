"""Features of an application that change how it must be upgraded."""

from enum import StrEnum


class Use(StrEnum):
    """A feature of the application that changes how it must be upgraded."""

    FK_JOIN = "fk-join"
    KTABLE = "ktable"
    STATIC = "static"
    IQ = "iq"
    EOS = "eos"
    REGEX = "regex"
