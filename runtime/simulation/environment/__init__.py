"""What a simulated process finds around it: time, chance, the network, and others like it."""
