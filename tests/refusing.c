/* Stands before the C library of a test's process: refuses randomness or threads once it is told to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int no_entropy, threads_left = -1, fixed = -1;

void refuse_entropy(int refuse) { no_entropy = refuse; }
/* From now on every random byte is zero, but for one of each 32, by its place among them; -1 ends it. */
void fix_entropy(int place) { fixed = place; }
void allow_threads(int count) { threads_left = count; }

/* A process that calls none of these functions states its threads in the environment. */
__attribute__((constructor)) static void begin(void) {
    const char *count = getenv("ALLOWED_THREADS");
    if (count) threads_left = atoi(count);
}

static int is_random(const char *path) {
    return no_entropy && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"));
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    static ssize_t (*next)(void *, size_t, unsigned);
    if (no_entropy) { errno = ENOSYS; return -1; }
    if (fixed >= 0) {
        for (size_t i = 0; i < size; i++) ((char *)buffer)[i] = (int)i % 32 == fixed;
        return size;
    }
    if (!next) next = dlsym(RTLD_NEXT, "getrandom");
    return next(buffer, size, flags);
}

int getentropy(void *buffer, size_t size) {
    static int (*next)(void *, size_t);
    if (no_entropy) { errno = ENOSYS; return -1; }
    if (!next) next = dlsym(RTLD_NEXT, "getentropy");
    return next(buffer, size);
}

long syscall(long number, ...) {
    static long (*next)(long, ...);
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    if (no_entropy && number == SYS_getrandom) { errno = ENOSYS; return -1; }
    if (!next) next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define OPENS(name)                                                            \
    int name(const char *path, int flags, ...) {                               \
        static int (*next)(const char *, int, ...);                            \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        int mode = va_arg(rest, int);                                          \
        va_end(rest);                                                          \
        if (is_random(path)) { errno = EACCES; return -1; }                    \
        if (!next) next = dlsym(RTLD_NEXT, #name);                             \
        return next(path, flags, mode);                                        \
    }
OPENS(open)
OPENS(open64)

/* A compiler that checks buffers calls these instead. */
#define OPENS_CHECKED(name)                                                    \
    int name(const char *path, int flags) {                                    \
        static int (*next)(const char *, int);                                 \
        if (is_random(path)) { errno = EACCES; return -1; }                    \
        if (!next) next = dlsym(RTLD_NEXT, #name);                             \
        return next(path, flags);                                              \
    }
OPENS_CHECKED(__open_2)
OPENS_CHECKED(__open64_2)

int pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*run)(void *), void *argument) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!threads_left) return EAGAIN;
    if (threads_left > 0) threads_left--;
    if (!next) next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, with, run, argument);
}
