"""The surroundings of a simulated process: time, chance, network, assignors, foreign clients."""
