"""Start Python workers while the driver plans its first job."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_assign.workers.kernel import Batches


def start_workers(spark: SparkSession) -> None:
    """Let each core of a local session start its Python worker, and do not wait for it.

    The workers are those of later jobs. If the session ends first, nothing is reported.
    """

    def start() -> None:
        with suppress(Py4JError, PySparkException, OSError):
            spark.sparkContext.setJobDescription("start the Python workers")
            cores = spark.sparkContext.defaultParallelism
            rows = spark.range(0, cores, numPartitions=cores).mapInArrow(_same, "id long")
            rows.write.format("noop").mode("overwrite").save()

    InheritableThread(start, daemon=True).start()


def _same(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The batches as they are."""
    yield from batches
