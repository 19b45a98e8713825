#include "model_key.h"

#include "det/trial.h"
#include "fsx.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_MAX ((size_t)8 << 20)

const char *const model_flags[] = {"-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g1", "-fPIC", "-shared",
                                   NULL};

struct keying {
    struct hash *hash;
    int dirfd;
};

static void add_text(struct hash *h, const char *s)
{
    hash_add(h, s, strlen(s) + 1);
}

static bool is_source(const char *path)
{
    static const char *const suffixes[] = {".c", ".h", ".inc"};
    size_t n = strlen(path);
    for (size_t i = 0; i < DET_ARRAY_LEN(suffixes); i++) {
        size_t k = strlen(suffixes[i]);
        if (n > k && strcmp(path + n - k, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static int add_file(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct keying *k = arg;
    if (is_dir) /* what we may not read the compiler may not either */
        return faccessat(k->dirfd, path, R_OK | X_OK, AT_EACCESS) < 0 ? FSX_SKIP : 0;
    if (!is_source(path))
        return 0;
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    int rc = fsx_read_file(k->dirfd, path, SOURCE_MAX, &text, err);
    if (rc < 0)
        return det_wrap(err, rc, "source %s", path);
    add_text(k->hash, path);
    hash_add(k->hash, &text.len, sizeof text.len);
    hash_add(k->hash, buf_str(&text), text.len);
    return 0;
}

static int add_tree(struct hash *h, const char *dir, struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_dir(AT_FDCWD, dir, err);
    if (fd < 0)
        return fd;
    struct keying k = {h, fd};
    return fsx_walk(fd, add_file, &k, err);
}

/* det/ *.h of every include directory. */
static int add_includes(struct hash *h, const char *include, struct det_err *err)
{
    for (const char *p = include; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        det_cleanup(freep) char *dir = det_asprintf("%.*s/det", (int)n, p);
        int rc = add_tree(h, dir, err);
        if (rc < 0)
            return rc;
        p += n;
    }
    return 0;
}

/* The compiler's file, not its --version: asking costs ten milliseconds at every start. */
static int add_compiler(struct hash *h, const char *compiler, struct det_err *err)
{
    struct stat st;
    if (stat(compiler, &st) < 0)
        return det_fail(err, DET_EIO, "compiler %s: %s", compiler, strerror(errno));
    const int64_t facts[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (int64_t)st.st_ino};
    add_text(h, compiler);
    hash_add(h, facts, sizeof facts);
    return 0;
}

int model_key(const char *c_path, const char *compiler, const char *include, char hex[HASH_HEX_MAX],
              struct det_err *err)
{
    int version = DET_API_VERSION;
    struct hash *h = hash_create(HASH_SHA256);
    hash_add(h, &version, sizeof version);
    add_text(h, c_path);
    for (size_t i = 0; model_flags[i]; i++)
        add_text(h, model_flags[i]);
    int rc = add_compiler(h, compiler, err);
    if (rc == 0)
        rc = add_includes(h, include, err);
    if (rc == 0)
        rc = add_tree(h, ".", err);
    hash_end(h, hex);
    return rc;
}
