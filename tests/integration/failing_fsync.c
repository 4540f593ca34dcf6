/* Preloaded into a child process: fsync and fdatasync fail with EIO while a file exists.
   MOLDAU_FAILING_FSYNC names the file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*sync_call)(int);

static int forward(const char *name, int fd) {
    const char *switch_path = getenv("MOLDAU_FAILING_FSYNC");
    if (switch_path && access(switch_path, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return ((sync_call)dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return forward("fsync", fd); }
int fdatasync(int fd) { return forward("fdatasync", fd); }
