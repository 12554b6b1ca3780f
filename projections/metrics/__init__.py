"""What Prometheus scrapes: the groups by their logs, requests, and what workers measure."""
