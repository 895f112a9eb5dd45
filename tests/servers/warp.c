/*
 * Preloaded into a server: makes its clock wrong and its disk slow, as a file says that may be
 * written at any time. Two numbers of eight bytes: milliseconds to add to the time of day, and
 * milliseconds that each flush to the disk takes longer. Clocks that only measure are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *told;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("LAMPLIGHTER_WARP");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED)
        told = found;
}

static int64_t added_ms(void) { return told ? told[0] : 0; }

static void add(int64_t ms, int64_t *seconds, int64_t *rest, int64_t parts) {
    int64_t sum = *rest + ms % 1000 * (parts / 1000);
    int64_t carry = sum < 0 ? -1 : sum >= parts ? 1 : 0;
    *seconds += ms / 1000 + carry;
    *rest = sum - carry * parts;
}

int clock_gettime(clockid_t which, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, at);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t seconds = at->tv_sec, rest = at->tv_nsec;
        add(added_ms(), &seconds, &rest, 1000000000);
        at->tv_sec = seconds;
        at->tv_nsec = rest;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

static int flush(const char *name, int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    int64_t ms = told ? told[1] : 0;
    if (ms > 0) {
        struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&pause, NULL);
    }
    return real(file);
}

int fsync(int file) { return flush("fsync", file); }
int fdatasync(int file) { return flush("fdatasync", file); }
