"""The meters: numbers that the other kernels count with every request."""

from libc.stdint cimport int64_t


cdef class Tally:
    pass


cdef class Buckets:
    def __init__(self, bounds):
        self.bounds = tuple(bounds)
        if len(self.bounds) > BOUNDS_MAX:
            raise ValueError(f"{len(self.bounds)} bounds are more than {BOUNDS_MAX}")
        self.bound_count = len(self.bounds)
        for number in range(self.bound_count):
            self.bound[number] = self.bounds[number]

    @property
    def counts(self):
        return [self.counted[number] for number in range(self.bound_count + 1)]

    cpdef int observe(self, double value, int64_t count=1) except -1:
        cdef int number = 0
        while number < self.bound_count and self.bound[number] < value:
            number += 1
        self.counted[number] += count
        self.sum += value * count
        return 0
