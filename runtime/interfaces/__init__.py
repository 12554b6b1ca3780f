"""The user interfaces of a node: REST, the command line, and the replies that both share."""
