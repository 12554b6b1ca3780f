"""What is sent to the actors of a node: commands of groups, and questions."""
