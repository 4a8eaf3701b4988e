/* Stands between the server and libc (LD_PRELOAD) and writes down every change of a directory tree, so that the observer can compute what a
 * power cut would have left of it: `recorder.rs` reads the journal, which has the same layout.
 *
 * FAULTS_ROOT: the tree. FAULTS_JOURNAL: the file to append to. FAULTS_LIES: a pattern of paths (fnmatch) whose syncs claim success and do
 * nothing. A record is `struct record`, two names and the bytes of a write. A change and its record are one step under one lock, so the
 * journal has the order in which the changes took effect. A sync has two records, one before and one behind it: what was written before the
 * first is durable once the second is there. The record of a close has the time of the last write. Space that is reserved without libc (fallocate) shows in the length that a sync's record has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536

enum kind { OPENED = 1, WRITTEN, SYNC_BEGINS, SYNC_ENDS, CUT, CLOSED, RENAMED, LINKED, REMOVED, DIRECTORY_REMOVED, DIRECTORY_MADE, DIRECTORY_SYNC_BEGINS };

struct record {
    uint32_t kind, name, second, unused;
    uint64_t file, at, size;
};

static const char *root, *lies;
static size_t root_length;
static int journal = -1;
static uint64_t files[FILES], opened, syncs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    REAL(int, "open64", const char *, int, ...);
    const char *path = getenv("FAULTS_JOURNAL");
    root = getenv("FAULTS_ROOT");
    lies = getenv("FAULTS_LIES");
    if (!path || !root) return;
    root_length = strlen(root);
    journal = real(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The lock is held. */
static void note(struct record record, const char *name, const char *second, const void *bytes) {
    record.name = name ? (uint32_t)strlen(name) : 0;
    record.second = second ? (uint32_t)strlen(second) : 0;
    struct iovec parts[] = {{&record, sizeof record}, {(void *)name, record.name}, {(void *)second, record.second},
        {(void *)bytes, record.kind == WRITTEN ? record.size : 0}};
    int before = errno;
    size_t left = 0;
    for (int i = 0; i < 4; i++) left += parts[i].iov_len;
    /* a journal with a gap would be worse than no server */
    if (writev(journal, parts, 4) != (ssize_t)left) _exit(86);
    errno = before;
}

static int is_inside(const char *path) {
    return journal >= 0 && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

/* The path that a call means; false: it lies outside of the tree. */
static int resolve(int at, const char *path, char *out) {
    if (journal < 0) return 0;
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return 0;
        strcpy(out, path);
    } else {
        char directory[PATH_MAX], name[64];
        int before = errno;
        if (at == AT_FDCWD) strcpy(name, "/proc/self/cwd");
        else snprintf(name, sizeof name, "/proc/self/fd/%d", at);
        ssize_t length = readlink(name, directory, sizeof directory - 1);
        errno = before;
        if (length <= 0 || (size_t)length + strlen(path) + 2 > PATH_MAX) return 0;
        memcpy(out, directory, (size_t)length);
        out[length] = '/';
        strcpy(out + length + 1, path);
    }
    return is_inside(out);
}

static int path_of(int fd, char *out) {
    char name[64];
    int before = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, out, PATH_MAX - 1);
    errno = before;
    if (length <= 0) return 0;
    out[length] = 0;
    return is_inside(out);
}

static mode_t mode_of(int flags, va_list list) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPENING(call) \
    char full[PATH_MAX]; \
    if ((flags & O_ACCMODE) == O_RDONLY || !resolve(at, path, full)) return call; \
    pthread_mutex_lock(&lock); \
    int fd = call; \
    if (fd >= 0 && fd < FILES) { \
        files[fd] = ++opened; \
        note((struct record){.kind = OPENED, .file = opened, .at = flags & O_TRUNC ? 1 : 0}, full, NULL, NULL); \
    } \
    pthread_mutex_unlock(&lock); \
    return fd

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = mode_of(flags, list); \
        va_end(list); \
        int at = AT_FDCWD; \
        OPENING(real(path, flags, mode)); \
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
        OPENING(real(at, path, flags, mode)); \
    }
OPENAT(openat)
OPENAT(openat64)

static uint64_t file_of(int fd) {
    return fd >= 0 && fd < FILES ? files[fd] : 0;
}

ssize_t write(int fd, const void *buffer, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!file_of(fd)) return real(fd, buffer, size);
    pthread_mutex_lock(&lock);
    off_t at = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    ssize_t written = real(fd, buffer, size);
    if (written > 0) note((struct record){.kind = WRITTEN, .file = files[fd], .at = (uint64_t)at, .size = (uint64_t)written}, NULL, NULL, buffer);
    pthread_mutex_unlock(&lock);
    return written;
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *buffer, size_t size, off_t at) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        if (!file_of(fd)) return real(fd, buffer, size, at); \
        pthread_mutex_lock(&lock); \
        ssize_t written = real(fd, buffer, size, at); \
        if (written > 0) note((struct record){.kind = WRITTEN, .file = files[fd], .at = (uint64_t)at, .size = (uint64_t)written}, NULL, NULL, buffer); \
        pthread_mutex_unlock(&lock); \
        return written; \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNCATE(name) \
    int name(int fd, off_t length) { \
        REAL(int, #name, int, off_t); \
        if (!file_of(fd)) return real(fd, length); \
        pthread_mutex_lock(&lock); \
        int done = real(fd, length); \
        if (done == 0) note((struct record){.kind = CUT, .file = files[fd], .at = (uint64_t)length}, NULL, NULL, NULL); \
        pthread_mutex_unlock(&lock); \
        return done; \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

static int sync_with(int (*real)(int), int fd) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return real(fd);
    if (lies && fnmatch(lies, path, 0) == 0) return 0;
    struct stat stat;
    if (fstat(fd, &stat) != 0) return real(fd);
    int is_directory = S_ISDIR(stat.st_mode);
    if (!is_directory && !file_of(fd)) return real(fd);
    pthread_mutex_lock(&lock);
    uint64_t number = ++syncs;
    if (is_directory) note((struct record){.kind = DIRECTORY_SYNC_BEGINS, .size = number}, path, NULL, NULL);
    else note((struct record){.kind = SYNC_BEGINS, .file = files[fd], .at = (uint64_t)stat.st_size, .size = number}, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    int done = real(fd);
    if (done == 0) {
        pthread_mutex_lock(&lock);
        note((struct record){.kind = SYNC_ENDS, .size = number}, NULL, NULL, NULL);
        pthread_mutex_unlock(&lock);
    }
    return done;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return sync_with(real, fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return sync_with(real, fd);
}

int close(int fd) {
    REAL(int, "close", int);
    if (!file_of(fd)) return real(fd);
    struct stat stat;
    pthread_mutex_lock(&lock);
    uint64_t written = fstat(fd, &stat) == 0 ? (uint64_t)stat.st_mtim.tv_sec * 1000000000 + (uint64_t)stat.st_mtim.tv_nsec : 0;
    note((struct record){.kind = CLOSED, .file = files[fd], .at = written}, NULL, NULL, NULL);
    files[fd] = 0;
    int done = real(fd);
    pthread_mutex_unlock(&lock);
    return done;
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    char full[PATH_MAX], second[PATH_MAX];
    if (!resolve(AT_FDCWD, from, full) || !resolve(AT_FDCWD, to, second)) return real(from, to);
    pthread_mutex_lock(&lock);
    int done = real(from, to);
    if (done == 0) note((struct record){.kind = RENAMED}, full, second, NULL);
    pthread_mutex_unlock(&lock);
    return done;
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    char full[PATH_MAX], second[PATH_MAX];
    if (!resolve(from_at, from, full) || !resolve(to_at, to, second)) return real(from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    int done = real(from_at, from, to_at, to, flags);
    if (done == 0) note((struct record){.kind = LINKED}, full, second, NULL);
    pthread_mutex_unlock(&lock);
    return done;
}

int link(const char *from, const char *to) {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    char full[PATH_MAX];
    if (!resolve(at, path, full)) return real(at, path, flags);
    pthread_mutex_lock(&lock);
    int done = real(at, path, flags);
    if (done == 0) note((struct record){.kind = flags & AT_REMOVEDIR ? DIRECTORY_REMOVED : REMOVED}, full, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return done;
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    char full[PATH_MAX];
    if (!resolve(AT_FDCWD, path, full)) return real(path, mode);
    pthread_mutex_lock(&lock);
    int done = real(path, mode);
    if (done == 0) note((struct record){.kind = DIRECTORY_MADE}, full, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return done;
}
