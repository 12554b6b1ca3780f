"""Topics of Kafka, as a source and as a sink; needs the extra `fairlead-connect[kafka]`."""
