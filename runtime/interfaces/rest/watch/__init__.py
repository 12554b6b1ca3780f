"""Work of the REST process beside its requests: lines of logs, audit, the lag of what rests."""
