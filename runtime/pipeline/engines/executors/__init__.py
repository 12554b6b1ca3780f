"""Where jobs run: the cluster of a driver, and Python functions as the tasks of a Spark job."""
