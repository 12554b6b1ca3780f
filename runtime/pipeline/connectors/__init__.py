"""The built-in connector `SparkPipeline`, and the discovery of installed connectors."""
