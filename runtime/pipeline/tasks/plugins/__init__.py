"""Guards around the code of plugins: deadlines for calls, and checks of returned values."""
