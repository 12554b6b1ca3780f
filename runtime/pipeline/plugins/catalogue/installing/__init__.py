"""Installing of plugins: from which files they are made, what of these is refused, where they lie."""
