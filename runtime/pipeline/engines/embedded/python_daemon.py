# pyright: basic
"""The process that Spark forks its Python workers from, with all that they need loaded once.

It is run as `python -m`, as `pyspark.daemon` is, which it stands for. The only other thread is one
of Arrow's allocators, which expects forks.
"""

import gc

import pyarrow as pa
import pyarrow.csv  # so that each worker has it
import pyarrow.parquet
from pyspark.daemon import manager

if __name__ == "__main__":
    pa.set_cpu_count(1)  # Spark gives each of its tasks one core
    pa.set_io_thread_count(1)
    gc.freeze()  # otherwise a collection in a worker copies the memory that they share
    manager()
