"""The assignors of Kafka Connect's own protocol, exactly as Connect's classes behave.

A worker of the classic protocol assigns with them when it leads (`actors/worker/classic`), and
`deal_eagerly` is also what the built-in assignor `eager` deals with. Tests hold them against
Connect's own class (tests/assignors/test_connect_peer.py).
"""
