"""The backend of the routes: HTTP conventions, and access to logs, actors and plugins."""
