"""Tables as a source: what `source.type=postgres` names, and what it reads of the server's log."""
