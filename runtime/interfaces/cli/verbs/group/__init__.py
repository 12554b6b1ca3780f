"""The verbs about a group: its history, its plan, its logs and its workers."""
