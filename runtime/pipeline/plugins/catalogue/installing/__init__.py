"""Installing of plugins: what they are made of, what of that is refused, and where they lie."""
