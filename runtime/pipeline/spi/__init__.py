"""What connectors are made of: the classes that the authors of plugins import and implement."""
