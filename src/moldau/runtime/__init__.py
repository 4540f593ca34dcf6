"""The shell: real files, threads and clocks around the core."""
