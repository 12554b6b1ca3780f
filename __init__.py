"""fairlead: runs data connectors on Spark, and can explain every move.

Read it from the ground up: `events` is what is written down, `actors` are those who speak,
`projections` those who read, and `runtime` runs them all. CONTRIBUTING.md says more.
"""
