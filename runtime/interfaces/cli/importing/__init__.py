"""The verb `import`: connectors of a running Kafka Connect, moved to a node and back."""
