"""What a cluster answers, as tables for people."""
