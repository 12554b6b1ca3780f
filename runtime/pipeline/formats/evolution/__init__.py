"""How schemas change: which types hold which, and what a source or a sink makes of a change."""
