"""The bytes that clients of classic groups hand each other, and that the coordinator hands on.

A classic group looks at them as far as to refuse what nobody could read. Who goes by what they say
is a member of ours, and the translation between the protocols, neither of which is here yet.
"""
