#include "pack.h"

#include "b64.h"
#include "fsx.h"
#include "vec.h"
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct pack {
    int dirfd;
    const char *dir;
    json_t *files;
    size_t bytes;
    VEC(char *) ignore;
};

/* Without the spaces at its end, but for one after a backslash. */
static void trim_spaces(char *line)
{
    size_t kept = 0;
    for (size_t i = 0; line[i]; i++) {
        bool escaped = line[i] == '\\' && line[i + 1];
        i += escaped;
        if (escaped || line[i] != ' ')
            kept = i + 1;
    }
    line[kept] = '\0';
}

static int read_ignore(struct pack *p, struct det_err *err)
{
    struct buf text = BUF_INIT;
    int rc = fsx_read_file(p->dirfd, ".detignore", 1 << 20, &text, NULL);
    if (rc == DET_ENOENT)
        return 0;
    if (rc < 0)
        return det_fail(err, rc, "%s/.detignore cannot be read: %s", p->dir, det_strerror(rc));
    char *line = text.p;
    if (line && strncmp(line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        line += strlen(BYTE_ORDER_MARK);
    for (char *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        if (*end)
            *end++ = '\0';
        trim_spaces(line);
        if (*line && *line != '#')
            vec_push(&p->ignore, det_strdup(line));
    }
    buf_finish(&text);
    return 0;
}

/* fnmatch() takes such a bracket as it stands; git takes it for no pattern. */
static bool open_bracket(const char *pattern)
{
    for (const char *c = pattern; *c; c++) {
        if (*c == '\\' && c[1])
            c++;
        else if (*c == '[') {
            c += 1 + (c[1] == '!' || c[1] == '^');
            for (bool first = true; first || *c != ']'; first = false, c++) {
                if (*c == '\\')
                    c++;
                else if (c[0] == '[' && c[1] == ':' && strstr(c, ":]"))
                    c = strstr(c, ":]") + 1;
                if (!*c)
                    return true;
            }
        }
    }
    return false;
}

static bool name_hit(const char *pattern, const char *name)
{
    return !open_bracket(pattern) && fnmatch(pattern, name, 0) == 0;
}

/* Segment by segment; "**" stands for any number of directories, and at the end for all in one. */
static bool segments_hit(const char *pattern, const char *path)
{
    if (strcmp(pattern, "**") == 0)
        return true;
    if (strncmp(pattern, "**/", 3) == 0) {
        while (path && !segments_hit(pattern + 3, path))
            if ((path = strchr(path, '/')))
                path++;
        return path;
    }
    size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");
    char *one det_cleanup(freep) = det_strndup(pattern, n);
    char *name det_cleanup(freep) = det_strndup(path, m);
    if (!name_hit(one, name) || (pattern[n] == '/') != (path[m] == '/'))
        return false;
    return pattern[n] == '\0' || segments_hit(pattern + n + 1, path + m + 1);
}

/* One pattern of .gitignore's kind against "a/b/c" (directories end in '/'). */
static bool pattern_hits(const char *pattern, const char *path, bool is_dir)
{
    size_t n = strlen(path), m = strlen(pattern);
    bool dirs_only = m && pattern[m - 1] == '/';
    char *bare det_cleanup(freep) = det_strndup(path, n && path[n - 1] == '/' ? n - 1 : n);
    char *pat det_cleanup(freep) = det_strndup(pattern, dirs_only ? m - 1 : m);
    if (dirs_only && !is_dir)
        return false;
    if (strchr(pat, '/'))
        return segments_hit(pat[0] == '/' ? pat + 1 : pat, bare);
    const char *base = strrchr(bare, '/');
    return name_hit(pat, base ? base + 1 : bare);
}

static bool is_named(const struct pack *p, const char *path, bool is_dir)
{
    static const char *const always[] = {".git/", "__pycache__/", ".detignore"};
    bool hit = false;
    for (size_t k = 0; k < DET_ARRAY_LEN(always); k++)
        if (pattern_hits(always[k], path, is_dir))
            return true;
    for (size_t k = 0; k < p->ignore.n; k++) {
        const char *pattern = p->ignore.v[k];
        bool keeps = pattern[0] == '!';
        if (pattern_hits(pattern + keeps, path, is_dir))
            hit = !keeps;
    }
    return hit;
}

/* A path is left out when it, or a directory above it, is named. */
static bool is_ignored(const struct pack *p, const char *path, bool is_dir)
{
    char *head det_cleanup(freep) = det_strdup(path);
    for (char *slash = strchr(head, '/'); slash && slash[1]; slash = strchr(slash + 1, '/')) {
        char next = slash[1];
        slash[1] = '\0';
        bool hit = is_named(p, head, true);
        slash[1] = next;
        if (hit)
            return true;
    }
    return is_named(p, path, is_dir);
}

static json_t *make_entry(const char *path, const struct stat *st, const char *content)
{
    json_t *e = json_object();
    size_t n = strlen(path);
    json_set(e, "path", json_stringn(path, n && path[n - 1] == '/' ? n - 1 : n));
    json_set(e, "type", json_integer(S_ISDIR(st->st_mode) ? 53 : 48));
    json_set(e, "content", json_string(content));
    json_set(e, "mtime", json_i64s(st->st_mtime));
    json_set(e, "mode", json_integer((json_int_t)st->st_mode));
    json_set(e, "uid", json_integer(0));
    json_set(e, "gid", json_integer(0));
    return e;
}

static int add_file(struct pack *p, const char *path, const struct stat *st, struct det_err *err)
{
    p->bytes += (size_t)st->st_size;
    if (p->bytes > PACK_BYTES_MAX)
        return det_fail(err, DET_ETOOBIG,
                        "%s holds more than %zu MiB (reached at %s): name what the model does not "
                        "need in %s/.detignore",
                        p->dir, PACK_BYTES_MAX >> 20, path, p->dir);
    det_cleanup(det_closep) int fd = openat(p->dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s/%s", p->dir, path);
    struct buf raw = BUF_INIT, b64 = BUF_INIT;
    int rc = fsx_read_rest(fd, path, PACK_BYTES_MAX, &raw, err);
    if (rc == 0) {
        b64_encode(&b64, raw.p, raw.len);
        json_array_append_new(p->files, make_entry(path, st, buf_str(&b64)));
    }
    buf_finish(&raw);
    buf_finish(&b64);
    return rc;
}

static int refuse_entry(const struct pack *p, const char *path, const char *what,
                        struct det_err *err)
{
    return det_fail(err, DET_EINVAL, "%s/%s is %s: remove it or name it in .detignore", p->dir,
                    path, what);
}

/* A link to a file goes as that file; what a trial would miss for want of its code is refused. */
static int on_path(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct pack *p = arg;
    struct stat st = {0};
    bool there = fstatat(p->dirfd, path, &st, 0) == 0;
    if (is_ignored(p, path, S_ISDIR(st.st_mode)))
        return 0;
    if (!json_is_text(path))
        return det_fail(err, DET_EINVAL,
                        "%s/%s: a name that is not UTF-8: rename it or name it in .detignore",
                        p->dir, path);
    if (!there)
        return refuse_entry(p, path, "a link that leads nowhere", err);
    if (S_ISDIR(st.st_mode) && !is_dir)
        return refuse_entry(p, path, "a link to a directory, and these are not sent", err);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return refuse_entry(p, path, "neither a file nor a directory", err);
    if (!is_dir)
        return add_file(p, path, &st, err);
    json_array_append_new(p->files, make_entry(path, &st, ""));
    return 0;
}

int pack_dir(const char *dir, json_t **ret_files, struct det_err *err)
{
    struct pack p = {.dir = dir, .dirfd = fsx_open_dir(AT_FDCWD, dir, err)};
    if (p.dirfd < 0)
        return det_wrap(err, p.dirfd, "model directory");
    p.files = json_array();
    int rc = read_ignore(&p, err);
    if (rc == 0)
        rc = fsx_walk_all(p.dirfd, on_path, &p, err);
    for (size_t i = 0; i < p.ignore.n; i++)
        free(p.ignore.v[i]);
    vec_free(&p.ignore);
    close(p.dirfd);
    if (rc < 0)
        json_decref(p.files);
    else
        *ret_files = p.files;
    return rc;
}
