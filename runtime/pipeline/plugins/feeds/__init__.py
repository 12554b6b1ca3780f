"""Sink connectors of Kafka Connect that are fed by sources of fairlead's."""
