"""Cython kernels for the hot loops: the message codec, record batches, request frames."""
