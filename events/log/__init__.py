"""The durable log: sealed frames, their order, their owner, and what became of them."""
