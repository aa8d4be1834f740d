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

enum { KILL, FULL, BROKEN, INTERRUPTED, SHORT, SECOND, FAULTS }; /* as in bench.py */
static const int error_of[FAULTS] = {[FULL] = ENOSPC, [BROKEN] = EIO, [INTERRUPTED] = EINTR};

/* Kinds of calls, by the faults that they can meet; only these are counted. */
#define CAN(fault) (1 << (fault))
#define ALL (CAN(KILL) | CAN(BROKEN) | CAN(SECOND))
#define SPACE (ALL | CAN(FULL))
#define WAITS (SPACE | CAN(INTERRUPTED))
#define WRITES (WAITS | CAN(SHORT))
#define REMOVES ALL
#define CLOSES (CAN(FULL) | CAN(BROKEN)) /* what was written may fail as late as that, on a network */

static char root[PATH_MAX];
static size_t root_length;
static long wanted; /* the call that fails, counted from 1; 0: none */
static int fault;
static atomic_long seen[FAULTS];
static int removing; /* whether the call that failed removes or closes */

/* FULL lasts: from its call on, the disk is full. */
void faults_arm(const char *directory, long call, int how) {
    strncpy(root, directory, sizeof root - 1);
    root_length = strlen(root);
    wanted = call;
    fault = how;
    for (int each = 0; each < FAULTS; each++) atomic_store(&seen[each], 0);
}
long faults_seen(int how) { return atomic_load(&seen[how]); }
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
    if (directory != AT_FDCWD) return fd_is_below(directory);
    if (!getcwd(here, sizeof here)) return 0;
    size_t length = strlen(here);
    snprintf(here + length, sizeof here - length, "/%s", path);
    return is_below(here);
}

/* Tell whether the call fails (1, with errno set), does half of its work (-1), or goes on (0). */
static int strikes(int kind) {
    int struck = 0;
    for (int each = 0; each < FAULTS; each++) {
        if (!(kind & CAN(each))) continue;
        long call = atomic_fetch_add(&seen[each], 1) + 1;
        struck |= each == fault && wanted && (call == wanted || (call > wanted && fault == FULL));
    }
    if (!struck) return 0;
    removing = kind == REMOVES || kind == CLOSES;
    if (error_of[fault]) {
        errno = error_of[fault];
        return 1;
    }
    if (kind == WRITES && fault != SECOND) return -1;
    raise(fault == SECOND ? SIGSTOP : SIGKILL);
    return 0;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (flags & (O_CREAT | O_TRUNC) && at_is_below(AT_FDCWD, path) && strikes(WAITS)) \
            return -1; \
        return real(path, flags, mode); \
    }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (flags & (O_CREAT | O_TRUNC) && at_is_below(directory, path) && strikes(WAITS)) \
            return -1; \
        return real(directory, path, flags, mode); \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

/* A process that is killed while it writes has written half. So has a short write, which is no error. */
#define WRITING(name, parameters, types, half, whole) \
    ssize_t name parameters { \
        REAL(ssize_t, name, types); \
        int struck = root_length && fd_is_below(fd) ? strikes(WRITES) : 0; \
        if (struck > 0) return -1; \
        if (struck < 0 && fault == KILL) { (void)!half; raise(SIGKILL); } \
        return struck < 0 && size > 1 ? half : whole; \
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

/* To a stream, a short write is an error, so it meets none. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    REAL(size_t, fwrite, const void *, size_t, size_t, FILE *);
    int struck = root_length && fd_is_below(fileno(stream)) ? strikes(SPACE) : 0;
    return struck ? 0 : real(data, size, count, stream);
}

int close(int fd) {
    REAL(int, close, int);
    int writes = root_length && fcntl(fd, F_GETFL) & (O_WRONLY | O_RDWR) && fd_is_below(fd);
    int struck = writes && strikes(CLOSES);
    int kept = errno, ended = real(fd);
    if (struck) errno = kept;
    return struck ? -1 : ended;
}

#define ON_FD(name, parameters, types, kind, call) \
    int name parameters { \
        REAL(int, name, types); \
        if (root_length && fd_is_below(fd) && strikes(kind)) return -1; \
        return call; \
    }
ON_FD(fsync, (int fd), int, WAITS, real(fd))
ON_FD(fdatasync, (int fd), int, WAITS, real(fd))
ON_FD(ftruncate, (int fd, off_t size), int COMMA off_t, SPACE, real(fd, size))
ON_FD(ftruncate64, (int fd, off64_t size), int COMMA off64_t, SPACE, real(fd, size))

#define ON_PATH(name, parameters, types, directory, kind, call) \
    int name parameters { \
        REAL(int, name, types); \
        if (at_is_below(directory, path) && strikes(kind)) return -1; \
        return call; \
    }
ON_PATH(mkdir, (const char *path, mode_t mode), const char * COMMA mode_t, AT_FDCWD, SPACE, real(path, mode))
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), int COMMA const char * COMMA mode_t, at, SPACE,
        real(at, path, mode))
ON_PATH(unlink, (const char *path), const char *, AT_FDCWD, REMOVES, real(path))
ON_PATH(unlinkat, (int at, const char *path, int flags), int COMMA const char * COMMA int, at, REMOVES,
        real(at, path, flags))
ON_PATH(rmdir, (const char *path), const char *, AT_FDCWD, REMOVES, real(path))
ON_PATH(rename, (const char *path, const char *to), const char * COMMA const char *, AT_FDCWD, SPACE, real(path, to))
ON_PATH(renameat, (int at, const char *path, int other, const char *to), int COMMA const char * COMMA int COMMA const char *,
        at, SPACE, real(at, path, other, to))
ON_PATH(renameat2, (int at, const char *path, int other, const char *to, unsigned flags),
        int COMMA const char * COMMA int COMMA const char * COMMA unsigned, at, SPACE, real(at, path, other, to, flags))
ON_PATH(link, (const char *path, const char *to), const char * COMMA const char *, AT_FDCWD, SPACE, real(path, to))
