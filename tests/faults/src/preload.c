/* Stands between the server and libc (LD_PRELOAD) and lets calls fail as a file says, which the observer writes while the server runs.
 *
 * The file named by FAULTS_RULES is mapped by both sides: see `struct rules`, and `inject.rs`, which has the same layout. A rule names a kind
 * of call (open, read, write, sync, rename, unlink, mkdir), a pattern of paths (fnmatch) and an errno; `left` counts down, -1 is for ever.
 * A sync that fails because of a rule with `lose` takes with it what was written to the file since the last good one, as a power cut would:
 * zeros stand there afterwards. `clock_micros` is added to the wall clock; each sync takes `sync_delay_micros` longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define RULES 8
#define RANGES 65536

struct rule {
    char call[16];
    char path[176];
    int32_t error, left;
    uint32_t hits, lose;
};
struct rules {
    int64_t clock_micros;
    uint32_t tracks, sync_delay_micros;
    char unused[48];
    struct rule rules[RULES];
};
struct range {
    int fd;
    off_t from, to;
};

static struct rules *rules;
static struct range ranges[RANGES];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_RULES");
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof(struct rules), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) rules = map;
}

/* Whether the call has to fail; errno is set. */
static int fails(const char *call, const char *path, int *lose) {
    if (!rules) return 0;
    for (int i = 0; i < RULES; i++) {
        struct rule *rule = &rules->rules[i];
        int32_t left = __atomic_load_n(&rule->left, __ATOMIC_ACQUIRE);
        if (left == 0 || strcmp(rule->call, call) != 0 || fnmatch(rule->path, path, 0) != 0) continue;
        if (left > 0 && __atomic_fetch_sub(&rule->left, 1, __ATOMIC_ACQ_REL) <= 0) {
            __atomic_store_n(&rule->left, 0, __ATOMIC_RELEASE);
            continue;
        }
        __atomic_fetch_add(&rule->hits, 1, __ATOMIC_ACQ_REL);
        if (lose) *lose = rule->lose;
        errno = rule->error;
        return 1;
    }
    return 0;
}

static int any(void) {
    for (int i = 0; rules && i < RULES; i++)
        if (__atomic_load_n(&rules->rules[i].left, __ATOMIC_ACQUIRE) != 0) return 1;
    return 0;
}

static int fd_fails(const char *call, int fd, int *lose) {
    char name[32], path[4096];
    if (!any()) return 0;
    int before = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    errno = before;
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(call, path, lose);
}

static int path_fails(const char *call, const char *path) {
    return any() && fails(call, path, NULL);
}

/* What was written and is not synced. */
static void wrote(int fd, off_t from, ssize_t size) {
    if (!rules || !rules->tracks || size <= 0 || from < 0) return;
    pthread_mutex_lock(&lock);
    if (used > 0 && ranges[used - 1].fd == fd && ranges[used - 1].to == from) ranges[used - 1].to += size;
    else if (used < RANGES) ranges[used++] = (struct range){fd, from, from + size};
    pthread_mutex_unlock(&lock);
}

static void forget(int fd) {
    if (!rules || !rules->tracks) return;
    pthread_mutex_lock(&lock);
    size_t kept = 0;
    for (size_t i = 0; i < used; i++)
        if (ranges[i].fd != fd) ranges[kept++] = ranges[i];
    used = kept;
    pthread_mutex_unlock(&lock);
}

static void lose_unsynced(int fd) {
    static const char zeros[65536];
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    int before = errno;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < used; i++)
        for (off_t at = ranges[i].from; ranges[i].fd == fd && at < ranges[i].to; at += sizeof zeros) {
            size_t size = ranges[i].to - at < (off_t)sizeof zeros ? (size_t)(ranges[i].to - at) : sizeof zeros;
            if (real(fd, zeros, size, at) < 0) break;
        }
    pthread_mutex_unlock(&lock);
    forget(fd);
    errno = before;
}

static mode_t mode_of(int flags, va_list list) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = mode_of(flags, list); \
        va_end(list); \
        return path_fails("open", path) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = mode_of(flags, list); \
        va_end(list); \
        return path_fails("open", path) ? -1 : real(at, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int fd, void *buffer, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    return fd_fails("read", fd, NULL) ? -1 : real(fd, buffer, size);
}

#define PREAD(name) \
    ssize_t name(int fd, void *buffer, size_t size, off_t at) { \
        REAL(ssize_t, #name, int, void *, size_t, off_t); \
        return fd_fails("read", fd, NULL) ? -1 : real(fd, buffer, size, at); \
    }
PREAD(pread)
PREAD(pread64)

ssize_t write(int fd, const void *buffer, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (fd_fails("write", fd, NULL)) return -1;
    off_t at = rules && rules->tracks ? lseek(fd, 0, SEEK_CUR) : -1;
    ssize_t written = real(fd, buffer, size);
    wrote(fd, at, written);
    return written;
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *buffer, size_t size, off_t at) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        if (fd_fails("write", fd, NULL)) return -1; \
        ssize_t written = real(fd, buffer, size, at); \
        wrote(fd, at, written); \
        return written; \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        int lose = 0; \
        uint32_t delay = rules ? __atomic_load_n(&rules->sync_delay_micros, __ATOMIC_ACQUIRE) : 0; \
        if (delay) usleep(delay); \
        if (fd_fails("sync", fd, &lose)) { \
            if (lose) lose_unsynced(fd); \
            return -1; \
        } \
        int done = real(fd); \
        if (done == 0) forget(fd); \
        return done; \
    }
SYNC(fsync)
SYNC(fdatasync)

int close(int fd) {
    REAL(int, "close", int);
    forget(fd);
    return real(fd);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return path_fails("rename", to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return path_fails("unlink", path) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return path_fails("mkdir", path) ? -1 : real(path, mode);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int done = real(clock, time);
    int64_t micros = rules ? __atomic_load_n(&rules->clock_micros, __ATOMIC_ACQUIRE) : 0;
    if (done == 0 && micros != 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanos = time->tv_nsec + micros % 1000000 * 1000;
        time->tv_sec += micros / 1000000 + (nanos < 0 ? -1 : nanos / 1000000000);
        time->tv_nsec = nanos < 0 ? nanos + 1000000000 : nanos % 1000000000;
    }
    return done;
}
