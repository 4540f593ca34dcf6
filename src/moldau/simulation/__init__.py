"""A world from one seed: machines, network, disks and time, and the shells that run on them."""
