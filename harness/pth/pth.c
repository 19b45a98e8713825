#include "pth.h"

#include "fsx.h"
#include "hash.h"
#include "mem.h"
#include "pth_impl.h"
#include "pth_zip.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "archive"
/* Read at a time: proc(5) counts what a call has read when it ends, and that is a sign of life. */
#define PORTION ((size_t)16 << 20)

/* ---- writing ---- */

/* In torch's order: the pickle, the storages, the version. */
static int add_entries(struct zip_writer *w, const struct buf *pickle,
                       const struct pth_tensor_list *tensors, struct det_err *err)
{
    char name[64];
    int rc = zip_writer_add(w, FOLDER "/data.pkl", pickle->p, pickle->len, err);
    if (rc == 0)
        rc = zip_writer_add(w, FOLDER "/byteorder", "little", 6, err);
    for (size_t i = 0; rc == 0 && i < tensors->n; i++) {
        const struct pth_tensor_view *t = tensors->v[i];
        snprintf(name, sizeof name, FOLDER "/data/%zu", i);
        rc = zip_writer_add(w, name, t->data, (size_t)pth_view_numel(t) * pth_dtype_size(t->dtype),
                            err);
    }
    return rc < 0 ? rc : zip_writer_add(w, FOLDER "/version", "3\n", 2, err);
}

int pth_save_as(const char *path, const struct pth_value *root, const struct zip_writer_options *o,
                char *ret_hash, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf pickle = BUF_INIT;
    struct pth_tensor_list tensors = {0};
    struct zip_writer *w = NULL;
    int rc = pth_pickle(&pickle, root, &tensors, err);
    if (rc == 0)
        rc = zip_writer_create(path, o, &w, err);
    if (rc == 0 && (rc = add_entries(w, &pickle, &tensors, err)) < 0)
        zip_writer_destroy(w);
    else if (rc == 0)
        rc = zip_writer_end(w, ret_hash, err);
    free(tensors.v);
    return rc;
}

int pth_save(const char *path, const struct pth_value *root, struct det_err *err)
{
    char unused[HASH_HEX_MAX];
    return pth_save_hashed(path, root, NULL, unused, err);
}

int pth_save_hashed(const char *path, const struct pth_value *root, void *room, char *ret_hash,
                    struct det_err *err)
{
    const struct zip_writer_options o = {.room = room};
    return pth_save_as(path, root, &o, ret_hash, err);
}

int pth_save_pickle(const char *path, const struct pth_value *root, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf pickle = BUF_INIT;
    int rc = pth_pickle(&pickle, root, NULL, err);
    if (rc < 0)
        return det_wrap(err, rc, "write %s", path);
    det_cleanup(det_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "create %s", path);
    rc = fsx_write_all(fd, pickle.p, pickle.len, err);
    if (rc < 0)
        return det_wrap(err, rc, "write %s", path);
    rc = close(fd); /* where a quota of NFS is told */
    fd = -1;
    return rc < 0 ? det_fail_errno(err, DET_EIO, errno, "write %s", path) : 0;
}

/* ---- reading ---- */

struct archive_view {
    struct zip_reader zip;
    const char *folder; /* of the entries: "archive", or the name the file was saved under */
    size_t folder_len;
};

static int find_storage(void *arg, const char *key, const char **ret, size_t *ret_bytes,
                        struct det_err *err)
{
    const struct archive_view *a = arg;
    const struct zip_entry *e;
    det_cleanup(freep) char *name = det_asprintf("data/%.64s", key);
    int rc = zip_reader_get(&a->zip, a->folder, a->folder_len, name, &e, err);
    if (rc < 0)
        return det_fail(err, DET_ECORRUPT, "a tensor's storage \"%.64s\" is missing or damaged",
                        key);
    *ret = e->data;
    *ret_bytes = e->size;
    return 0;
}

/* "<folder>/data.pkl" names the folder. */
static int find_folder(struct archive_view *a, struct det_err *err)
{
    static const char tail[] = "/data.pkl";
    size_t k = sizeof tail - 1;
    for (size_t i = 0; i < a->zip.n; i++) {
        const struct zip_entry *e = &a->zip.v[i];
        if (e->name_len > k && memcmp(e->name + e->name_len - k, tail, k) == 0 &&
            !memchr(e->name, '/', e->name_len - k)) {
            a->folder = e->name;
            a->folder_len = e->name_len - k;
            return 0;
        }
    }
    return det_fail(err, DET_ECORRUPT, "zip: no data.pkl: not a file of torch.save");
}

static int check_byteorder(const struct archive_view *a, struct det_err *err)
{
    const struct zip_entry *e;
    struct det_err absent = {0}; /* PyTorch before 2.0 wrote none: no failure of ours */
    int rc = zip_reader_get(&a->zip, a->folder, a->folder_len, "byteorder", &e, &absent);
    if (rc == DET_ENOENT)
        return 0;
    if (rc < 0)
        return det_fail_as(err, rc, &absent);
    if (e->size != 6 || memcmp(e->data, "little", 6) != 0)
        return det_fail(err, DET_ECORRUPT, "a file of a big-endian machine cannot be read here");
    return 0;
}

static int parse_archive(struct archive_view *a, struct pth_doc *doc, const struct pth_value **ret,
                         struct det_err *err)
{
    const struct zip_entry *pickle;
    int rc = find_folder(a, err);
    if (rc < 0 || (rc = check_byteorder(a, err)) < 0)
        return rc;
    rc = zip_reader_get(&a->zip, a->folder, a->folder_len, "data.pkl", &pickle, err);
    if (rc < 0)
        return rc;
    struct pth_storages storages = {.find = find_storage, .arg = a};
    return pth_unpickle(pickle->data, pickle->size, &storages, doc, ret, err);
}

/* `bytes` must live as long as doc. */
static int parse_kept(const void *bytes, size_t n, struct pth_doc *doc,
                      const struct pth_value **ret, struct det_err *err)
{
    struct archive_view a = {0};
    int rc = zip_reader_init(&a.zip, bytes, n, err);
    if (rc == 0)
        rc = parse_archive(&a, doc, ret, err);
    zip_reader_finish(&a.zip);
    return rc;
}

int pth_parse(const void *bytes, size_t n, struct pth_doc *doc, const struct pth_value **ret_root,
              struct det_err *err)
{
    char *copy = pth_doc_try_alloc(doc, n + 1);
    if (!copy)
        return det_fail(err, DET_ENOMEM, "a state of %zu bytes", n);
    memcpy(copy, bytes, n);
    return parse_kept(copy, n, doc, ret_root, err);
}

/* The file's bytes in the document's memory. */
static int read_file(const char *path, size_t bytes_max, struct pth_doc *doc, char **ret,
                     size_t *ret_n, struct det_err *err)
{
    struct stat st;
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return det_fail_errno(err, det_code_of_errno(errno), errno, "open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return det_fail(err, DET_ECORRUPT, "%s is not a regular file", path);
    if ((uint64_t)st.st_size > bytes_max)
        return det_fail(err, DET_ETOOBIG, "%s has %lld bytes, %zu are allowed", path,
                        (long long)st.st_size, bytes_max);
    size_t size = (size_t)st.st_size, n = 0;
    char *p = pth_doc_try_alloc(doc, size + 1);
    if (!p)
        return det_fail(err, DET_ENOMEM, "%s: no memory for its %zu bytes", path, size);
    while (n < size) {
        ssize_t got = read(fd, p + n, size - n < PORTION ? size - n : PORTION);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return det_fail_errno(err, DET_EIO, errno, "read %s", path);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret = p;
    *ret_n = n;
    return 0;
}

int pth_load(const char *path, struct pth_doc *doc, const struct pth_value **ret_root,
             struct det_err *err)
{
    char *bytes = NULL;
    size_t n = 0;
    int rc = read_file(path, SIZE_MAX - 1, doc, &bytes, &n, err);
    if (rc < 0)
        return rc;
    rc = parse_kept(bytes, n, doc, ret_root, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

int pth_load_pickle(const char *path, struct pth_doc *doc, const struct pth_value **ret_root,
                    struct det_err *err)
{
    char *bytes = NULL;
    size_t n = 0;
    int rc = read_file(path, PTH_PICKLE_MAX, doc, &bytes, &n, err);
    if (rc < 0)
        return rc;
    rc = pth_unpickle(bytes, n, NULL, doc, ret_root, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}
