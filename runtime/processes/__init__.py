"""The mechanics of processes that this one starts: Java, output, memory, isolation, liveness."""
