"""Work of the REST process beside its requests: lines of the log, and the lag of what rests."""
