/*
 * Preloaded, it lets one call of a program fail: an allocation, a read, a write or a query, each as
 * a full machine, a broken disk or a lost server would. tests/faults/row_30_nth.py arms it.
 *
 * A call is known by its place: a hash of the callers on its stack, where they lie in their own
 * libraries, so that it is the same in each process of a build. $DET_NTH names a file of struct
 * control, which all processes map: the first call in `program` of this kind and from this place
 * fails, and no other. While it is armed for the place 0, every place that a process comes by for
 * the first time is a line of $DET_NTH.places: program, kind, place, then its callers as
 * FILE+OFFSET, the nearest first.
 *
 *   alloc   malloc and its like: NULL, ENOMEM
 *   read    of files (EIO) and sockets (ECONNRESET); what a process tells itself does not fail
 *   write   the same, with fsync, rename and ftruncate (EIO)
 *   query   libpq refuses to send it
 *   cut     the connection is gone when libpq sends it
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

enum { DEPTH_MAX = 10, SEEN_MAX = 1 << 16 };
enum kind { ALLOC, READ, WRITE, QUERY, CUT };

struct control {
    _Atomic uint64_t place;  /* 0: none fails, all are listed */
    _Atomic uint32_t kind;   /* one of enum kind */
    _Atomic uint32_t armed;  /* 1: the next one fails; whoever makes that 0 does */
    _Atomic uint32_t struck; /* the process in which it did */
    char program[32];
};

static struct control *control;
static char program[32];
static int list_fd = -1;
static _Atomic uint64_t seen[SEEN_MAX];
static __thread bool busy __attribute__((tls_model("initial-exec")));

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("DET_NTH");
    if (!path)
        return;
    busy = true;
    char list[4096], exe[4096];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    snprintf(list, sizeof list, "%s.places", path);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n > 0) {
        exe[n] = '\0';
        const char *base = strrchr(exe, '/');
        snprintf(program, sizeof program, "%.31s", base ? base + 1 : exe);
    }
    list_fd = open(list, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (list_fd >= 0) { /* out of the way of what a program numbers itself */
        int high = fcntl(list_fd, F_DUPFD_CLOEXEC, 900);
        close(list_fd);
        list_fd = high;
    }
    if (p != MAP_FAILED)
        control = p;
    busy = false;
}

struct stack {
    uintptr_t at[DEPTH_MAX];
    struct link_map *map[DEPTH_MAX];
    int n, skip;
    uint64_t hash;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *c, void *arg)
{
    struct stack *s = arg;
    uintptr_t pc = _Unwind_GetIP(c);
    struct dl_find_object o;
    if (!pc || _dl_find_object((void *)(pc - 1), &o) != 0)
        return _URC_END_OF_STACK;
    if (s->skip > 0) {
        s->skip--;
        return _URC_NO_REASON;
    }
    s->map[s->n] = o.dlfo_link_map;
    s->at[s->n] = pc - 1 - o.dlfo_link_map->l_addr;
    s->hash = (s->hash ^ s->at[s->n]) * 0x9e3779b97f4a7c15u;
    s->hash ^= s->hash >> 29;
    return ++s->n < DEPTH_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Whether this is the first time; a full table says no. */
static bool is_new(uint64_t hash)
{
    for (size_t i = 0; i < SEEN_MAX; i++) {
        _Atomic uint64_t *slot = &seen[(hash + i) % SEEN_MAX];
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(slot, &none, hash))
            return true;
        if (none == hash)
            return false;
    }
    return false;
}

static void list(enum kind kind, const struct stack *s)
{
    char line[8192];
    int n =
        snprintf(line, sizeof line, "%s %d %llu", program, (int)kind, (unsigned long long)s->hash);
    for (int i = 0; i < s->n && n < (int)sizeof line - 600; i++) {
        const char *name = s->map[i]->l_name;
        n += snprintf(line + n, sizeof line - (size_t)n, " %.500s+%llx", name && *name ? name : "-",
                      (unsigned long long)s->at[i]);
    }
    line[n++] = '\n';
    syscall(SYS_write, list_fd, line, (size_t)n);
}

/* Whether this call is the one that is to fail. */
static bool __attribute__((noinline)) fails(enum kind kind)
{
    if (!control || busy)
        return false;
    uint64_t wanted = atomic_load(&control->place);
    if (wanted && (!atomic_load(&control->armed) || atomic_load(&control->kind) != kind ||
                   strcmp(control->program, program) != 0))
        return false;
    busy = true;
    int kept = errno;
    struct stack s = {.skip = 2, .hash = 0x100u + kind};
    _Unwind_Backtrace(on_frame, &s);
    bool struck = false;
    if (!wanted && list_fd >= 0 && is_new(s.hash)) {
        list(kind, &s);
    } else if (wanted && wanted == s.hash) {
        uint32_t one = 1;
        struck = atomic_compare_exchange_strong(&control->armed, &one, 0);
        if (struck)
            atomic_store(&control->struck, (uint32_t)getpid());
    }
    errno = kept;
    busy = false;
    return struck;
}

/* 0, or why a read or write of fd fails now. */
static int broken(enum kind kind, int fd)
{
    struct stat st;
    if (!control || busy || fstat(fd, &st) != 0)
        return 0;
    if (S_ISSOCK(st.st_mode)) {
        if (!fails(kind))
            return 0;
        shutdown(fd, SHUT_RDWR); /* it is so for the other side too */
        return ECONNRESET;
    }
    return S_ISREG(st.st_mode) && fails(kind) ? EIO : 0;
}

#define FAIL(code, value)                                                                          \
    do {                                                                                           \
        int code_ = (code);                                                                        \
        if (code_) {                                                                               \
            errno = code_;                                                                         \
            return value;                                                                          \
        }                                                                                          \
    } while (0)
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
    next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

void *malloc(size_t n)
{
    FAIL(fails(ALLOC) ? ENOMEM : 0, NULL);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    FAIL(fails(ALLOC) ? ENOMEM : 0, NULL);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    FAIL(n > 0 && fails(ALLOC) ? ENOMEM : 0, NULL);
    return __libc_realloc(p, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
    if (fails(ALLOC))
        return ENOMEM;
    void *p = __libc_memalign(align, n);
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

void *aligned_alloc(size_t align, size_t n)
{
    FAIL(fails(ALLOC) ? ENOMEM : 0, NULL);
    return __libc_memalign(align, n);
}

#define BROKEN_CALL(type, name, kind, params, ...)                                                 \
    type name params                                                                               \
    {                                                                                              \
        FAIL(broken(kind, fd), -1);                                                                \
        NEXT(name);                                                                                \
        return next(__VA_ARGS__);                                                                  \
    }
BROKEN_CALL(ssize_t, read, READ, (int fd, void *p, size_t n), fd, p, n)
BROKEN_CALL(ssize_t, pread, READ, (int fd, void *p, size_t n, off_t at), fd, p, n, at)
BROKEN_CALL(ssize_t, pread64, READ, (int fd, void *p, size_t n, off64_t at), fd, p, n, at)
BROKEN_CALL(ssize_t, readv, READ, (int fd, const struct iovec *v, int n), fd, v, n)
BROKEN_CALL(ssize_t, recv, READ, (int fd, void *p, size_t n, int flags), fd, p, n, flags)
BROKEN_CALL(ssize_t, recvmsg, READ, (int fd, struct msghdr *m, int flags), fd, m, flags)
BROKEN_CALL(ssize_t, write, WRITE, (int fd, const void *p, size_t n), fd, p, n)
BROKEN_CALL(ssize_t, pwrite, WRITE, (int fd, const void *p, size_t n, off_t at), fd, p, n, at)
BROKEN_CALL(ssize_t, pwrite64, WRITE, (int fd, const void *p, size_t n, off64_t at), fd, p, n, at)
BROKEN_CALL(ssize_t, writev, WRITE, (int fd, const struct iovec *v, int n), fd, v, n)
BROKEN_CALL(ssize_t, send, WRITE, (int fd, const void *p, size_t n, int flags), fd, p, n, flags)
BROKEN_CALL(ssize_t, sendmsg, WRITE, (int fd, const struct msghdr *m, int flags), fd, m, flags)
BROKEN_CALL(int, fsync, WRITE, (int fd), fd)
BROKEN_CALL(int, fdatasync, WRITE, (int fd), fd)
BROKEN_CALL(int, ftruncate, WRITE, (int fd, off_t n), fd, n)
BROKEN_CALL(int, ftruncate64, WRITE, (int fd, off64_t n), fd, n)

int rename(const char *from, const char *to)
{
    FAIL(fails(WRITE) ? EIO : 0, -1);
    NEXT(rename);
    return next(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    FAIL(fails(WRITE) ? EIO : 0, -1);
    NEXT(renameat);
    return next(from_dir, from, to_dir, to);
}

size_t fread(void *p, size_t size, size_t n, FILE *f)
{
    FAIL(broken(READ, fileno(f)), 0);
    NEXT(fread);
    return next(p, size, n, f);
}

size_t fwrite(const void *p, size_t size, size_t n, FILE *f)
{
    FAIL(broken(WRITE, fileno(f)), 0);
    NEXT(fwrite);
    return next(p, size, n, f);
}

/* libpq's, without its header: each takes the connection first. */
typedef void PGconn;
typedef void PGresult;
int PQsocket(const PGconn *c);

/* Whether libpq is to refuse it; its connection may be gone already. */
static bool is_refused(PGconn *c)
{
    static __typeof__(PQsocket) *socket_of;
    if (fails(CUT)) {
        if (!socket_of)
            socket_of = (__typeof__(PQsocket) *)dlsym(RTLD_NEXT, "PQsocket");
        shutdown(socket_of(c), SHUT_RDWR);
        return false;
    }
    return fails(QUERY);
}

#define QUERY_CALL(type, name, refused, params, ...)                                               \
    type name params;                                                                              \
    type name params                                                                               \
    {                                                                                              \
        if (is_refused(c))                                                                         \
            return refused;                                                                        \
        NEXT(name);                                                                                \
        return next(__VA_ARGS__);                                                                  \
    }
QUERY_CALL(PGresult *, PQexec, NULL, (PGconn * c, const char *sql), c, sql)
QUERY_CALL(PGresult *, PQexecParams, NULL,
           (PGconn * c, const char *sql, int n, const unsigned *types, const char *const *v,
            const int *len, const int *formats, int format),
           c, sql, n, types, v, len, formats, format)
QUERY_CALL(int, PQsendPrepare, 0,
           (PGconn * c, const char *name, const char *sql, int n, const unsigned *types), c, name,
           sql, n, types)
QUERY_CALL(int, PQsendQueryParams, 0,
           (PGconn * c, const char *sql, int n, const unsigned *types, const char *const *v,
            const int *len, const int *formats, int format),
           c, sql, n, types, v, len, formats, format)
QUERY_CALL(int, PQsendQueryPrepared, 0,
           (PGconn * c, const char *name, int n, const char *const *v, const int *len,
            const int *formats, int format),
           c, name, n, v, len, formats, format)
QUERY_CALL(int, PQpipelineSync, 0, (PGconn * c), c)
