"""The requests of a client by subject, and its work that takes several of them."""
