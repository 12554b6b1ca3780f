"""Checks of the SQL of users, with the JVM of an engine, or one for checks alone."""
