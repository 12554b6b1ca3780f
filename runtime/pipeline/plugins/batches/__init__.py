"""Source connectors of Kafka Connect whose records go to sinks of fairlead's."""
