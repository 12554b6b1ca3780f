"""HTTP itself: listeners, limits, who may ask, and how an error looks."""
