"""The demo: real flights, a few workers, a join and a kill, and a verdict."""
