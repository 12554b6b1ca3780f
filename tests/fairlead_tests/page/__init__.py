"""A drawn node and a real browser for the tests of the page."""
