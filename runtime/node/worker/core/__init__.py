"""What a worker decides, without its process: pure, run by the actor and by the simulator."""
