/* A disk that fails: the n-th change of a file below a folder kills the process, fails, or is cut short.
 *
 * Loaded with LD_PRELOAD. `arm` counts from then on; `changes` says how many there were. Calls that change
 * what a reader sees count: open with O_CREAT or O_TRUNC, write, pwrite, writev, ftruncate, fsync, rename,
 * unlink, fchmod and chmod. With `error` = 0 the n-th change kills the process before it happens, with -1 a
 * write takes half of its bytes, otherwise the change fails with that errno. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static long at = -1, count;
static int error;

void arm(const char *below, long n, int with) {
    snprintf(folder, sizeof folder, "%s", below);
    at = n, count = 0, error = with;
}

long changes(void) { return count; }

static int inside(const char *path) { return strncmp(path, folder, strlen(folder)) == 0; }

static int inside_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return inside(path);
}

/* Whether this change fails. */
static int strikes(int concerned) {
    if (at < 0 || !concerned || count++ != at) return 0;
    if (error == 0) raise(SIGKILL);
    errno = error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CHANGE(type, name, parameters, arguments, concerned) \
    type name parameters {                                   \
        if (strikes(concerned) && error > 0) return -1;      \
        return REAL(name) arguments;                         \
    }

CHANGE(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), inside_fd(fd))
CHANGE(int, ftruncate, (int fd, off_t n), (fd, n), inside_fd(fd))
CHANGE(int, fsync, (int fd), (fd), inside_fd(fd))
CHANGE(int, fchmod, (int fd, mode_t mode), (fd, mode), inside_fd(fd))
CHANGE(int, chmod, (const char *path, mode_t mode), (path, mode), inside(path))
CHANGE(int, rename, (const char *from, const char *to), (from, to), inside(to))
CHANGE(int, unlink, (const char *path), (path), inside(path))

ssize_t write(int fd, const void *bytes, size_t n) {
    if (!strikes(inside_fd(fd))) return REAL(write)(fd, bytes, n);
    return error > 0 ? -1 : REAL(write)(fd, bytes, n > 1 ? n / 2 : n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
    if (!strikes(inside_fd(fd))) return REAL(pwrite)(fd, bytes, n, offset);
    return error > 0 ? -1 : REAL(pwrite)(fd, bytes, n > 1 ? n / 2 : n, offset);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    if (strikes((flags & (O_CREAT | O_TRUNC)) && inside(path)) && error > 0) return -1;
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
    return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list more) {
    return flags & O_CREAT ? (mode_t)va_arg(more, int) : 0;
}

#define OPEN(name)                                    \
    int name(const char *path, int flags, ...) {      \
        va_list more;                                 \
        va_start(more, flags);                        \
        mode_t mode = mode_of(flags, more);           \
        va_end(more);                                 \
        return opened(#name, path, flags, mode);      \
    }
#undef open
#undef open64
OPEN(open)
OPEN(open64)

static FILE *file_opened(const char *name, const char *path, const char *mode) {
    if (strikes(mode[0] != 'r' && inside(path)) && error > 0) return NULL;
    FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, name);
    return real(path, mode);
}
FILE *fopen(const char *path, const char *mode) { return file_opened("fopen", path, mode); }
FILE *fopen64(const char *path, const char *mode) { return file_opened("fopen64", path, mode); }
