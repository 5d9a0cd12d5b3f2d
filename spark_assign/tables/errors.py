"""What can go wrong in the Spark job.

```
RebalanceError        encoding: never raised itself
+ SparkUnavailable    the surroundings: no Java, or Spark does not start      exit status 3
+ OutputInTheWay      ours: the output exists, or another job is writing it   exit status 2
+ BadTable            ours: a table or a row is not in the format             exit status 2
  + WrongRows         some rows of a group are not, and could be set apart
```
"""

from encoding import RebalanceError


class SparkUnavailable(RebalanceError):
    """Spark cannot be started here; the message says what is missing."""


class OutputInTheWay(RebalanceError):
    """The output exists already, or a running job is writing it."""


class BadTable(RebalanceError):
    """A table is not in the format; the message names column, row and value."""


class WrongRows(BadTable):
    """Rows of a huge group make no sense; the message names the first."""
