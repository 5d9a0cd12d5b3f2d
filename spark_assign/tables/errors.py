"""Errors of the Spark job, and exit statuses.

```
RebalanceError        base class of `encoding`, never raised itself
+ SparkUnavailable    no Java, or Spark does not start                  exit status 3
+ OutOfMemory         a group needs more memory than Spark has          exit status 3
+ OutputInTheWay      the output exists, or another job is writing it   exit status 2
+ BadTable            a table or a row is invalid                       exit status 2
  + WrongRows         rows of a huge group are invalid; others can be placed without them
```
"""

from encoding import RebalanceError


class SparkUnavailable(RebalanceError):
    """Spark cannot be started here; the message says what is missing."""


class OutOfMemory(RebalanceError):
    """A group needs more memory than Spark has; the message names the group, and an option."""


class OutputInTheWay(RebalanceError):
    """The output exists already, or a running job is writing it."""


class BadTable(RebalanceError):
    """A table is invalid; the message names column, row and value."""


class WrongRows(BadTable):
    """Rows of a huge group are invalid; the message names the first."""
