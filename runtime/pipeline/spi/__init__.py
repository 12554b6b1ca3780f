"""The interface of connectors: the classes that authors of plugins import and implement."""
