"""The other shell: the core on a simulated machine that fails as it is told, by seed."""
