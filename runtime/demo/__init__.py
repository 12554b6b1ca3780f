"""The demo: real flights, a crew of workers, a join and a kill, and a verdict."""
