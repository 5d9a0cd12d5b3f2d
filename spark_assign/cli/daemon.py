"""The process that Spark forks Python workers from, with the modules that they need.

A worker that Spark's own daemon forks imports them itself, which takes it seconds. For sessions
that a command starts itself (`spark.python.daemon.module`).
"""

from pyspark.daemon import manager

import spark_assign.batch  # noqa: F401 for the workers

if __name__ == "__main__":
    manager()
