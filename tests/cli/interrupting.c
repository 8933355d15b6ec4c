/* Stands before the C library of a test's process: counts the calls of its main thread, and sends it a signal at one.
   The count is in the file that INTERRUPT_COUNT names. INTERRUPT_AT is the number of a call. */
#define _GNU_SOURCE
#include <dlfcn.h>

/* No other header: it would declare the functions below with other types. */
char *getenv(const char *name);
long strtol(const char *text, char **end, int base);
int raise(int number);
void *mmap(void *place, unsigned long size, int protection, int flags, int file, long offset);

static long *calls, at, by;
static __thread int is_main;

static void count(void) {
    if (is_main && calls && ++*calls == at) raise((int)by);
}

#define COUNTS(name)                                                                                \
    long name(long a, long b, long c, long d, long e, long f) {                                     \
        static long (*next)(long, long, long, long, long, long);                                    \
        if (!next) next = (long (*)(long, long, long, long, long, long))dlsym(RTLD_NEXT, #name);    \
        count();                                                                                    \
        return next(a, b, c, d, e, f);                                                              \
    }
COUNTS(open) COUNTS(open64) COUNTS(openat) COUNTS(openat64) COUNTS(close) COUNTS(read) COUNTS(pread64) COUNTS(write)
COUNTS(pwrite64) COUNTS(lseek) COUNTS(lseek64) COUNTS(stat) COUNTS(stat64) COUNTS(lstat64) COUNTS(fstat)
COUNTS(fstat64) COUNTS(fsync) COUNTS(flock) COUNTS(fcntl) COUNTS(fcntl64) COUNTS(ftruncate64) COUNTS(unlink)
COUNTS(unlinkat) COUNTS(rename) COUNTS(link) COUNTS(mkdir) COUNTS(rmdir) COUNTS(opendir) COUNTS(munmap)
COUNTS(isatty) COUNTS(ioctl) COUNTS(getrandom) COUNTS(poll) COUNTS(select) COUNTS(send) COUNTS(recv)
COUNTS(shutdown) COUNTS(socketpair) COUNTS(sigaction) COUNTS(pthread_create) COUNTS(pthread_join)
COUNTS(sem_timedwait) COUNTS(sem_clockwait) COUNTS(readlink) COUNTS(_exit)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("INTERRUPT_COUNT");
    int (*opened)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int file = path ? opened(path, 2) : -1;
    if (file < 0) return;
    void *place = mmap(0, 8, 3, 1, file, 0);
    at = strtol(getenv("INTERRUPT_AT"), 0, 10);
    by = strtol(getenv("INTERRUPT_BY"), 0, 10);
    is_main = 1;
    calls = place == (void *)-1 ? 0 : place;
}
