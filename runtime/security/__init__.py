"""Who may use a node, and how: rights, secrets and tokens, limits of requests, TLS."""
