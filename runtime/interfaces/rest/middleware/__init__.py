"""The middleware around the routes: the check of origins, and what all answers get."""
