"""The decisions of a worker, without its process: pure, run by the actor and by the simulator."""
