"""Time and traffic: what is due when, which requests are new, and who sends too many."""
