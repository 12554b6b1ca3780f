"""Where work may run: what configs and operators ask of workers, and what workers can take."""
