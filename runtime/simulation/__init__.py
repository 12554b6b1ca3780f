"""The simulator: whole groups in virtual time, with the real rules, under random faults."""
