"""How requests come in and answers go out: sockets, time limits, paths, bodies, errors, types."""
