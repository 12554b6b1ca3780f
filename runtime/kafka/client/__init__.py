"""One client, as the listener has it: its bytes, and how long it is waited for."""
