"""Why an epoch came, what it led to, and where the time went: from the control log alone."""
