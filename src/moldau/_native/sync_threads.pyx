"""Threads that sync open files; only the runtime uses them.

They never take the interpreter's lock: a sync begins while the event loop goes on with its turn, and
its end waits for no thread but the loop. A pipe tells the loop that there are ends to be taken.
"""

cimport cython
from libc.errno cimport errno
from libc.stdlib cimport free, malloc

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
    int pthread_mutex_init(pthread_mutex_t*, void*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_cond_init(pthread_cond_t*, void*)
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*)
    int pthread_cond_signal(pthread_cond_t*)
    int pthread_cond_broadcast(pthread_cond_t*)

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int, const void*, size_t)

cdef extern from *:
    """
    #include <fcntl.h>
    #include <signal.h>
    #include <unistd.h>

    #if defined(__APPLE__)
    /* fsync on macOS leaves the data in the drive's own cache. */
    #define sync_content(fd) fcntl(fd, F_FULLFSYNC)
    #else
    /* Syncs the size, too, because it is needed to read the data back. */
    #define sync_content(fd) fdatasync(fd)
    #endif

    /* Signals are for the interpreter's threads. */
    static void block_signals(void)
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, 0);
    }
    """
    int sync_content(int) nogil
    void block_signals() nogil

cdef enum:
    THREADS_MAX = 64

cdef struct Job:
    Job* after
    long long number
    int count
    int begun  # how many of the files were begun
    int left  # how many have not ended
    int error  # of the first that failed, else 0
    int failed  # which that was
    int* files


cdef struct Shared:
    pthread_mutex_t lock
    pthread_cond_t more
    Job* first  # with files to begin
    Job* last
    Job* ended
    int idle  # threads that wait and were not woken
    int woken  # threads that were, and have not gone on yet
    int is_closing
    int told  # the pipe's end


@cython.final
cdef class SyncThreads:
    """Syncs files, several at once; `told` is written to when there are ends to be taken."""

    cdef Shared shared
    cdef pthread_t threads[THREADS_MAX]
    cdef int started
    cdef int threads_max
    cdef long long number

    def __cinit__(self, int told, int threads_max):
        assert 0 < threads_max <= THREADS_MAX
        pthread_mutex_init(&self.shared.lock, NULL)
        pthread_cond_init(&self.shared.more, NULL)
        self.shared.told = told
        self.threads_max = threads_max

    def begin(self, files):
        """Sync open files, which have to stay open until the end is taken; return its number."""
        cdef int count = len(files)
        assert count and not self.shared.is_closing
        cdef Job* job = <Job*>malloc(sizeof(Job) + count * sizeof(int))
        if job == NULL:
            raise MemoryError
        job.after = NULL
        job.count = job.left = count
        job.begun = job.error = job.failed = 0
        job.files = <int*>(job + 1)
        for index in range(count):
            job.files[index] = files[index]
        self.number += 1
        job.number = self.number
        pthread_mutex_lock(&self.shared.lock)
        if self.shared.last == NULL:
            self.shared.first = job
        else:
            self.shared.last.after = job
        self.shared.last = job
        # Only those that wait: one that has ended a sync may be far from its next turn.
        cdef int woken = min(count, self.shared.idle)
        cdef int wanted = count - woken
        self.shared.idle -= woken
        self.shared.woken += woken
        pthread_mutex_unlock(&self.shared.lock)
        for _ in range(woken):  # without the lock, which they take first
            pthread_cond_signal(&self.shared.more)
        while wanted > 0 and self.started < self.threads_max:
            if pthread_create(&self.threads[self.started], NULL, work, &self.shared):
                assert self.started, "not one thread could be started"
                break
            self.started += 1
            wanted -= 1
        return self.number

    def take_ended(self):
        """Return those that have ended: number, the error's number or 0, which file it was."""
        pthread_mutex_lock(&self.shared.lock)
        cdef Job* job = self.shared.ended
        self.shared.ended = NULL
        pthread_mutex_unlock(&self.shared.lock)
        cdef Job* after
        ended = []
        while job != NULL:
            ended.append((job.number, job.error, job.failed))
            after = job.after
            free(job)
            job = after
        ended.reverse()
        return ended

    def close(self):
        """Wait for everything that was begun; nothing can be begun any more."""
        with nogil:
            self.end_threads()

    cdef void end_threads(self) noexcept nogil:
        pthread_mutex_lock(&self.shared.lock)
        self.shared.is_closing = 1
        pthread_cond_broadcast(&self.shared.more)
        pthread_mutex_unlock(&self.shared.lock)
        for number in range(self.started):
            pthread_join(self.threads[number], NULL)
        self.started = 0

    def __dealloc__(self):
        self.end_threads()  # one that still runs would use what is freed here
        cdef Job* job = self.shared.ended
        cdef Job* after
        while job != NULL:
            after = job.after
            free(job)
            job = after


cdef void* work(void* given) noexcept nogil:
    cdef Shared* shared = <Shared*>given
    cdef Job* job
    cdef int index
    cdef int error
    block_signals()
    pthread_mutex_lock(&shared.lock)
    while True:
        if shared.first == NULL and not shared.is_closing:
            shared.idle += 1
            while not shared.woken and not shared.is_closing:
                pthread_cond_wait(&shared.more, &shared.lock)
            if shared.woken:
                shared.woken -= 1
        job = shared.first
        if job == NULL:
            if shared.is_closing:
                break
            continue  # another thread was quicker
        index = job.begun
        job.begun += 1
        if job.begun == job.count:
            shared.first = job.after
            if shared.first == NULL:
                shared.last = NULL
        pthread_mutex_unlock(&shared.lock)
        error = errno if sync_content(job.files[index]) else 0
        pthread_mutex_lock(&shared.lock)
        if error and not job.error:
            job.error = error
            job.failed = index
        job.left -= 1
        if not job.left:
            job.after = shared.ended
            shared.ended = job
            if job.after == NULL:
                # One byte for all that end before they are taken: the pipe is never full. Without
                # the lock, because the loop, which wants it next, may run instead of this thread.
                pthread_mutex_unlock(&shared.lock)
                write(shared.told, b"e", 1)
                pthread_mutex_lock(&shared.lock)
    pthread_mutex_unlock(&shared.lock)
    return NULL
