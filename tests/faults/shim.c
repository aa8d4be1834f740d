/* Makes the n-th system call that changes files below a directory fail, or kills the process there.

   Loaded with LD_PRELOAD, so that libraries are met, too; does nothing until `faults_arm` is called. */
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
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NEEDS_SPACE = 1, CAN_BE_INTERRUPTED = 2, REMOVES = 4 };

static char root[PATH_MAX];
static size_t root_length;
static long wanted; /* the call that fails, counted from 1; 0: none */
static int fault;   /* an error number, or -SIGKILL */
static atomic_long seen;
static int removing; /* whether the call that failed removes */

/* Only calls that can fail in this way are counted. ENOSPC lasts: from its call on, the disk is full. */
void faults_arm(const char *directory, long call, int how) {
    strncpy(root, directory, sizeof root - 1);
    root_length = strlen(root);
    wanted = call;
    fault = how;
    atomic_store(&seen, 0);
}
long faults_seen(void) { return atomic_load(&seen); }
int faults_removing(void) { return removing; }

static int is_below(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || !path[root_length]);
}

static int fd_is_below(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int at_is_below(int directory, const char *path) {
    char here[PATH_MAX];
    if (!root_length || !path) return 0;
    if (path[0] == '/') return is_below(path);
    if (directory == AT_FDCWD) return getcwd(here, sizeof here) && is_below(here);
    return fd_is_below(directory);
}

/* Tell whether the call fails (with errno set), is killed half-way (-1), or goes on. */
static int strikes(int kind, int half_way) {
    if (fault == ENOSPC && !(kind & NEEDS_SPACE)) return 0;
    if (fault == EINTR && !(kind & CAN_BE_INTERRUPTED)) return 0;
    long call = atomic_fetch_add(&seen, 1) + 1;
    if (!wanted || call < wanted || (call > wanted && fault != ENOSPC)) return 0;
    removing = kind & REMOVES;
    if (fault > 0) {
        errno = fault;
        return 1;
    }
    if (half_way) return -1;
    raise(SIGKILL);
    return 0;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (flags & (O_CREAT | O_TRUNC) && at_is_below(AT_FDCWD, path) && strikes(NEEDS_SPACE | CAN_BE_INTERRUPTED, 0)) \
            return -1; \
        return real(path, flags, mode); \
    }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (flags & (O_CREAT | O_TRUNC) && at_is_below(directory, path) && strikes(NEEDS_SPACE | CAN_BE_INTERRUPTED, 0)) \
            return -1; \
        return real(directory, path, flags, mode); \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

/* A process that is killed while it writes has written half. */
#define WRITING(name, parameters, types, half, whole) \
    ssize_t name parameters { \
        REAL(ssize_t, name, types); \
        if (root_length && fd_is_below(fd)) { \
            int struck = strikes(NEEDS_SPACE | CAN_BE_INTERRUPTED, 1); \
            if (struck > 0) return -1; \
            if (struck < 0) { (void)!half; raise(SIGKILL); } \
        } \
        return whole; \
    }
#define COMMA ,
WRITING(write, (int fd, const void *data, size_t size), int COMMA const void * COMMA size_t, real(fd, data, size / 2),
        real(fd, data, size))
WRITING(pwrite, (int fd, const void *data, size_t size, off_t at), int COMMA const void * COMMA size_t COMMA off_t,
        real(fd, data, size / 2, at), real(fd, data, size, at))
WRITING(pwrite64, (int fd, const void *data, size_t size, off64_t at), int COMMA const void * COMMA size_t COMMA off64_t,
        real(fd, data, size / 2, at), real(fd, data, size, at))
WRITING(writev, (int fd, const struct iovec *data, int size), int COMMA const struct iovec * COMMA int,
        real(fd, data, size / 2), real(fd, data, size))

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    REAL(size_t, fwrite, const void *, size_t, size_t, FILE *);
    if (root_length && fd_is_below(fileno(stream))) {
        int struck = strikes(NEEDS_SPACE, 1);
        if (struck > 0) return 0;
        if (struck < 0) { real(data, size, count / 2, stream); fflush(stream); raise(SIGKILL); }
    }
    return real(data, size, count, stream);
}

#define ON_FD(name, parameters, types, kind, call) \
    int name parameters { \
        REAL(int, name, types); \
        if (root_length && fd_is_below(fd) && strikes(kind, 0)) return -1; \
        return call; \
    }
ON_FD(fsync, (int fd), int, NEEDS_SPACE | CAN_BE_INTERRUPTED, real(fd))
ON_FD(fdatasync, (int fd), int, NEEDS_SPACE | CAN_BE_INTERRUPTED, real(fd))
ON_FD(ftruncate, (int fd, off_t size), int COMMA off_t, NEEDS_SPACE, real(fd, size))
ON_FD(ftruncate64, (int fd, off64_t size), int COMMA off64_t, NEEDS_SPACE, real(fd, size))

#define ON_PATH(name, parameters, types, directory, kind, call) \
    int name parameters { \
        REAL(int, name, types); \
        if (at_is_below(directory, path) && strikes(kind, 0)) return -1; \
        return call; \
    }
ON_PATH(mkdir, (const char *path, mode_t mode), const char * COMMA mode_t, AT_FDCWD, NEEDS_SPACE, real(path, mode))
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), int COMMA const char * COMMA mode_t, at, NEEDS_SPACE,
        real(at, path, mode))
ON_PATH(unlink, (const char *path), const char *, AT_FDCWD, REMOVES, real(path))
ON_PATH(unlinkat, (int at, const char *path, int flags), int COMMA const char * COMMA int, at, REMOVES,
        real(at, path, flags))
ON_PATH(rmdir, (const char *path), const char *, AT_FDCWD, REMOVES, real(path))
ON_PATH(rename, (const char *path, const char *to), const char * COMMA const char *, AT_FDCWD, NEEDS_SPACE, real(path, to))
ON_PATH(renameat, (int at, const char *path, int other, const char *to), int COMMA const char * COMMA int COMMA const char *,
        at, NEEDS_SPACE, real(at, path, other, to))
ON_PATH(renameat2, (int at, const char *path, int other, const char *to, unsigned flags),
        int COMMA const char * COMMA int COMMA const char * COMMA unsigned, at, NEEDS_SPACE, real(at, path, other, to, flags))
ON_PATH(link, (const char *path, const char *to), const char * COMMA const char *, AT_FDCWD, NEEDS_SPACE, real(path, to))
