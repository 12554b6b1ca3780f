"""What tasks do with the code of plugins: time its calls, and look at what it gives back."""
