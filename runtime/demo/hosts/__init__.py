"""The demo of several hosts: the owner of the group is killed with all of its node."""
