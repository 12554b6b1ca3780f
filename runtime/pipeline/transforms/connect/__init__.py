"""Connect's transforms and predicates, and those that go by its rules, as expressions of Spark."""
