"""The assignors of Kafka Connect's own protocol, exactly as Connect's classes behave.

No group speaks that protocol yet: these modules wait for the classic group type, and have no caller
in the product before it. Until then only tests call them (conformance cases, properties, and
Connect's own class beside them, see tests/assignors/test_connect_peer.py), but for `deal_eagerly`,
with which the built-in assignor `eager` deals.
"""
