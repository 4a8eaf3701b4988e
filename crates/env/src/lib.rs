//! The one door to clock, disk, network, randomness and tasks, real and simulated.
