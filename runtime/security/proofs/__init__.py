"""The proofs of who a caller is: users and tokens of a file, passwords, tokens of a provider."""
