/* A mapped file of tokens as overlapping or adjoining sequences. */
#include "dataset.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_VOCABULARY 256

struct tokens {
    struct det_token_options o;
    char *path;
    const char *map; /* NULL: made up, as the file is missing */
    size_t bytes;
    int64_t n;
};

static const size_t sizes[] = {[DET_TOKENS_U16] = 2, [DET_TOKENS_U32] = 4, [DET_TOKENS_I64] = 8};

static int64_t token_at(const struct tokens *t, int64_t i)
{
    uint16_t u16;
    uint32_t u32;
    int64_t i64;
    if (!t->map)
        return i % (t->o.vocabulary > 0 ? t->o.vocabulary : FAKE_VOCABULARY);
    const char *p = t->map + (size_t)i * sizes[t->o.type];
    switch (t->o.type) {
    case DET_TOKENS_U16: memcpy(&u16, p, sizeof u16); return u16;
    case DET_TOKENS_U32: memcpy(&u32, p, sizeof u32); return u32;
    case DET_TOKENS_I64: break;
    }
    memcpy(&i64, p, sizeof i64);
    return i64;
}

static int get_record(void *self, int64_t index, void *const *out, struct det_err *err)
{
    const struct tokens *t = self;
    int64_t first = index * t->o.stride;
    char *input = out[0], *target = out[1];
    for (int64_t i = 0; i <= t->o.sequence; i++) {
        int64_t v = token_at(t, first + i);
        if (t->o.vocabulary > 0 && (v < 0 || v >= t->o.vocabulary))
            return det_fail(err, DET_ECORRUPT,
                            "%s: token %lld is %lld, outside a vocabulary of %lld", t->path,
                            (long long)(first + i), (long long)v, (long long)t->o.vocabulary);
        if (i < t->o.sequence)
            memcpy(input + (size_t)i * sizeof v, &v, sizeof v);
        if (i > 0)
            memcpy(target + (size_t)(i - 1) * sizeof v, &v, sizeof v);
    }
    return 0;
}

static void destroy_tokens(void *self)
{
    struct tokens *t = self;
    if (t->map)
        munmap((void *)(uintptr_t)t->map, t->bytes);
    free(t->path);
    free(t);
}

static const struct det_dataset_type tokens_type = {.get = get_record, .destroy = destroy_tokens};

static int map_file(struct tokens *t, struct det_err *err)
{
    struct stat st;
    size_t size = sizes[t->o.type];
    det_cleanup(det_closep) int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && data_fake_wanted()) {
        t->o.stride = 1;
        t->n = t->o.sequence + DATASET_FAKE_RECORDS;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return det_fail_errno(err, det_code_of_errno(errno), errno, "token file %s", t->path);
    if (!S_ISREG(st.st_mode) || st.st_size % (off_t)size != 0)
        return det_fail(err, DET_ECORRUPT, "token file %s: not a file of tokens of %zu bytes",
                        t->path, size);
    t->n = (int64_t)(st.st_size / (off_t)size);
    if (t->n <= t->o.sequence)
        return det_fail(err, DET_EINVAL,
                        "token file %s: %lld tokens are too few for a sequence of %lld and the "
                        "token after it",
                        t->path, (long long)t->n, (long long)t->o.sequence);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return det_fail_errno(err, DET_EIO, errno, "token file %s: map it", t->path);
    t->map = map;
    t->bytes = (size_t)st.st_size;
    return 0;
}

struct det_dataset *det_dataset_tokens(const struct det_token_options *o, struct det_err *err)
{
    if ((unsigned)o->type > DET_TOKENS_I64 || o->sequence < 1 || o->stride < 0) {
        det_fail(err, DET_EINVAL, "token file %s: needs a type, a sequence >= 1 and a stride >= 0",
                 o->path);
        return NULL;
    }
    struct tokens *t = det_zalloc(sizeof *t);
    t->o = *o;
    t->o.stride = o->stride ? o->stride : o->sequence;
    t->path = det_strdup(o->path);
    if (map_file(t, err) < 0) {
        destroy_tokens(t);
        return NULL;
    }
    const struct det_field fields[] = {{"input", DET_I64, 1, {o->sequence}},
                                       {"target", DET_I64, 1, {o->sequence}}};
    return det_dataset_callback(&tokens_type, t, (t->n - 1 - o->sequence) / t->o.stride + 1, fields,
                                2, err);
}
