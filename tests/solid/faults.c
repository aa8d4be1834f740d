/* For LD_PRELOAD: makes the n-th call that changes files below a directory fail, or kills the process there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char root[PATH_MAX];
static long wanted, error; /* the call that fails, from 1, and what it says; 0: none, and the process is killed */
static atomic_long seen;
long faults_seen(void) { return atomic_load(&seen); }
void faults_arm(const char *directory, long call, int how) {
    strncpy(root, directory, sizeof root - 1), wanted = call, error = how;
}

static int below(int at, const char *path) {
    char link[64], found[PATH_MAX] = "";
    if (!root[0] || (path && path[0] == '/')) return root[0] && !strncmp(path, root, strlen(root));
    snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    return readlink(link, found, sizeof found - 1) > 0 && !strncmp(found, root, strlen(root));
}

/* A disk that is full stays full, and what needs no space does not mind. */
static int strikes(int needs_space) {
    if (error == ENOSPC && !needs_space) return 0;
    long call = atomic_fetch_add(&seen, 1) + 1;
    if (!wanted || call < wanted || (call > wanted && error != ENOSPC)) return 0;
    if (!error) raise(SIGKILL);
    errno = error;
    return 1;
}
#define REAL(type, name, parameters) \
    static type (*real) parameters; \
    if (!real) real = (type (*) parameters)dlsym(RTLD_NEXT, #name);
#define WRAP(type, name, parameters, where, needs_space, arguments) \
    type name parameters { \
        REAL(type, name, parameters) \
        return where && strikes(needs_space) ? -1 : real arguments; \
    }
#define OPEN(name, parameters, at, arguments) \
    int name parameters { \
        REAL(int, name, parameters) \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return flags & (O_CREAT | O_TRUNC) && below(at, path) && strikes(1) ? -1 : real arguments; \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
WRAP(ssize_t, write, (int fd, const void *data, size_t size), below(fd, NULL), 1, (fd, data, size))
WRAP(int, fsync, (int fd), below(fd, NULL), 1, (fd))
WRAP(int, mkdir, (const char *path, mode_t mode), below(AT_FDCWD, path), 1, (path, mode))
WRAP(int, rename, (const char *from, const char *to), below(AT_FDCWD, to), 1, (from, to))
WRAP(int, unlink, (const char *path), below(AT_FDCWD, path), 0, (path))
WRAP(int, unlinkat, (int at, const char *path, int flags), below(at, path), 0, (at, path, flags))
WRAP(int, rmdir, (const char *path), below(AT_FDCWD, path), 0, (path))
WRAP(int, chmod, (const char *path, mode_t mode), below(AT_FDCWD, path), 0, (path, mode))
