/* State files: what is written reads back; hostile pickles and zips are refused, never followed.
 * usage: test_pth FILE      of PyTorch 1.13's torch.save */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "hash.h"
#include "mem.h"
#include "pth_impl.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *from_torch;
static char path[] = "/tmp/det-pth-XXXXXX";
static struct pth_doc *doc, *back;
static const struct pth_value *got;
static struct det_err err;

static int setup(void **state)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    close(fd);
    doc = pth_doc_create();
    back = pth_doc_create();
    got = NULL;
    return fd < 0;
}

static int teardown(void **state)
{
    pth_doc_destroy(doc);
    pth_doc_destroy(back);
    return unlink(path);
}

static const float weights[6] = {1, -2, 0.5F, 1e-30F, 3e30F, 6};

static struct pth_value *sample(void)
{
    struct pth_value *root = pth_dict(doc), *models = pth_list(doc), *m = pth_ordered_dict(doc);
    pth_put(doc, m, "fc.weight", pth_tensor(doc, PTH_F32, 2, (int64_t[]){2, 3}, weights));
    pth_put(doc, m, "empty", pth_tensor(doc, PTH_I64, 1, (int64_t[]){0}, weights));
    pth_push(doc, models, m);
    pth_put(doc, root, "models_state_dict", models);
    struct pth_value *t = pth_tuple(doc);
    pth_push(doc, t, pth_float(doc, 0.1));
    pth_push(doc, t, pth_int(doc, -5));
    pth_push(doc, t, pth_int(doc, INT64_MIN));
    pth_push(doc, t, pth_bool(doc, true));
    pth_push(doc, t, pth_none(doc));
    pth_push(doc, t, pth_str(doc, "\xc3\xa9t\xc3\xa9"));
    pth_put(doc, root, "mixed", t);
    struct pth_value *state = pth_dict(doc);
    pth_put_int(doc, state, 7, pth_float(doc, INFINITY));
    pth_put(doc, root, "state", state);
    return root;
}

static void saved_state_reads_back(void **state)
{
    float out[6];
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(pth_load(path, back, &got, &err), 0);
    const struct pth_value *m = pth_at(pth_get(got, "models_state_dict"), 0);
    const struct pth_value *w = pth_get(m, "fc.weight");
    assert_int_equal(pth_tensor_ndim(w), 2);
    assert_int_equal(pth_tensor_dims(w)[1], 3);
    assert_int_equal(pth_tensor_read(w, DET_F32, out, sizeof out, &err), 0);
    assert_memory_equal(out, weights, sizeof out);
    assert_int_equal(pth_tensor_numel(pth_get(m, "empty")), 0);
    const struct pth_value *t = pth_get(got, "mixed");
    assert_int_equal(pth_kind(t), PTH_TUPLE);
    assert_true(pth_as_float(pth_at(t, 0), 0) == 0.1);
    assert_true(pth_as_int(pth_at(t, 1), 0) == -5);
    assert_true(pth_as_int(pth_at(t, 2), 0) == INT64_MIN);
    assert_int_equal(pth_kind(pth_at(t, 4)), PTH_NONE);
    assert_string_equal(pth_as_str(pth_at(t, 5), ""), "\xc3\xa9t\xc3\xa9");
    const struct pth_value *key = NULL, *seven = pth_item(pth_get(got, "state"), 0, &key);
    assert_int_equal(pth_as_int(key, 0), 7);
    assert_true(isinf(pth_as_float(seven, 0)));
    assert_null(pth_get(got, "absent"));
}

static void equal_states_are_equal_bytes(void **state)
{
    struct buf a = BUF_INIT, b = BUF_INIT;
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &a, &err), 0);
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &b, &err), 0);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.p, b.p, a.len);
    buf_finish(&a);
    buf_finish(&b);
}

static void plain_pickles_round_trip(void **state)
{
    struct pth_value *d = pth_dict(doc);
    pth_put(doc, d, "batches_trained", pth_int(doc, 5000000000));
    assert_int_equal(pth_save_pickle(path, d, &err), 0);
    assert_int_equal(pth_load_pickle(path, back, &got, &err), 0);
    assert_true(pth_as_int(pth_get(got, "batches_trained"), 0) == 5000000000);
    assert_int_equal(pth_save_pickle(path, sample(), &err), DET_EINVAL);
}

/* Cut short or with one byte changed, at every place: an answer, and never a crash. */
static void survive_damage(uint64_t zip64_from)
{
    struct buf file = BUF_INIT;
    char hex[HASH_HEX_MAX];
    const struct zip_writer_options o = {.zip64_from = zip64_from};
    assert_int_equal(pth_save_as(path, sample(), &o, hex, &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &file, &err), 0);
    for (size_t n = 0; n < file.len; n++) {
        struct pth_doc *d = pth_doc_create();
        assert_true(pth_parse(file.p, n, d, &got, &err) < 0);
        pth_doc_destroy(d);
    }
    for (size_t i = 0; i < file.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct pth_doc *d = pth_doc_create();
            file.p[i] = (char)(file.p[i] ^ 1 << bit);
            det_ignore(pth_parse(file.p, file.len, d, &got, &err), "any answer will do");
            file.p[i] = (char)(file.p[i] ^ 1 << bit);
            pth_doc_destroy(d);
        }
    }
    buf_finish(&file);
}

static void damage_is_survived(void **state)
{
    survive_damage(0);
}

static void damage_to_zip64_is_survived(void **state)
{
    survive_damage(1);
}

static void damaged_content_fails_its_checksum(void **state)
{
    struct buf file = BUF_INIT;
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &file, &err), 0);
    char *w = memmem(file.p, file.len, weights, sizeof weights);
    assert_non_null(w);
    *w ^= 1;
    assert_int_equal(pth_parse(file.p, file.len, back, &got, &err), DET_ECORRUPT);
    buf_finish(&file);
}

#define REFUSED(bytes, words)                                                                      \
    do {                                                                                           \
        assert_int_equal(pth_unpickle(bytes, sizeof(bytes) - 1, NULL, back, &got, &err),           \
                         DET_ECORRUPT);                                                            \
        if (!strstr(err.text, words))                                                              \
            fail_msg("\"%s\" does not say \"%s\"", err.text, words);                               \
    } while (0)

static void nothing_is_executed(void **state)
{
    REFUSED("\x80\x02"
            "cos\nsystem\n(X\x04\0\0\0trueeR.",
            "os.system is refused");
    REFUSED("\x80\x04\x8c\x08"
            "builtins\x8c\x04"
            "eval\x93.",
            "builtins.eval is refused");
    REFUSED("\x80\x02"
            "i__builtin__\neval\n.",
            "opcode 0x69");
    REFUSED("\x80\x02"
            "c__builtin__\neval\n.",
            "is refused");
    REFUSED("\x80\x02"
            "ccollections\nOrderedDict\n.",
            "bare name");
    REFUSED("\x80\x02"
            "N)R.",
            "a call");
    REFUSED("\x80\x02"
            "X\x01\0\0\0aQ.",
            "persistent id");
}

static void broken_pickles_are_refused(void **state)
{
    REFUSED("", "cut short");
    REFUSED("\x80\x02"
            "N",
            "cut short");
    REFUSED("\x80\x02"
            "NN.",
            "one value");
    REFUSED("\x80\x02"
            "(N.",
            "one value");
    REFUSED("\x80\x02"
            "X\xff\xff\xff\x7f"
            "abc.",
            "cut short");
    REFUSED("\x80\x02"
            "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
            "abc.",
            "cut short");
    REFUSED("\x80\x02"
            "h\0.",
            "never set");
    REFUSED("\x80\x02"
            "Nr\xff\xff\xff\x7f.",
            "memo");
    REFUSED("\x80\x02"
            "]q\0h\0a.",
            "contains itself");
    REFUSED("\x80\x02"
            "}](u.",
            "items for");
    REFUSED("\x80\x02"
            "}(Nu.",
            "without a value");
    REFUSED("\x80\x02"
            "}(]Nu.",
            "key");
    REFUSED("\x80\x02"
            "t.",
            "no mark");
    REFUSED("\x80\x02"
            "\x87.",
            "empty");
    REFUSED("\x80\x02"
            "(N\x86.",
            "empty");
    REFUSED("\x80\x02"
            "\x8a\x09\1\1\1\1\1\1\1\1\1.",
            "64 bits");
    REFUSED("\x80\x09"
            "N.",
            "protocol");
}

static void deep_nesting_is_refused(void **state)
{
    char bytes[402] = "\x80\x02";
    memset(bytes + 2, ']', 200);
    memset(bytes + 202, 'a', 199);
    bytes[401] = '.';
    assert_int_equal(pth_unpickle(bytes, sizeof bytes, NULL, back, &got, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "nested"));
}

/* A tuple of n + 1 lists, each of which holds the one before it `times` times. */
static int unpickle_shared(int n, int times)
{
    struct buf b = BUF_INIT;
    buf_add(&b, "\x80\x02(]", 4);
    for (int i = 0; i < n; i++) {
        buf_add(&b, (const char[]){'q', (char)i, ']', '('}, 4);
        for (int k = 0; k < times; k++)
            buf_add(&b, (const char[]){'h', (char)i}, 2);
        buf_add_ch(&b, 'e');
    }
    buf_add_str(&b, "t.");
    int rc = pth_unpickle(b.p, b.len, NULL, back, &got, &err);
    buf_finish(&b);
    return rc;
}

/* Who walks over all places walks over 2^20 here; 2^50 would never end. */
static void shared_values_count_at_each_place(void **state)
{
    assert_int_equal(unpickle_shared(20, 2), 0);
    assert_int_equal(pth_len(got), 21);
    assert_int_equal(unpickle_shared(50, 2), DET_ETOOBIG);
    assert_non_null(strstr(err.text, "shared ones counted at each place"));
}

/* The lists come in the order of their depth: each was looked at before the one that holds it. */
static void nesting_by_shared_values_is_refused(void **state)
{
    assert_int_equal(unpickle_shared(63, 1), 0);
    assert_int_equal(unpickle_shared(64, 1), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "nested"));
}

static int find_16(void *arg, const char *key, const char **ret, size_t *ret_bytes,
                   struct det_err *e)
{
    static const float data[4] = {1, 2, 3, 4};
    *ret = (const char *)data;
    *ret_bytes = sizeof data;
    return 0;
}

/* A tensor over a storage of 4 floats: offset, dims, strides and further arguments as given. */
static int tensor_with(const char *numel, const char *offset, const char *dims, const char *strides,
                       const char *more)
{
    struct buf b = BUF_INIT;
    const struct pth_storages s = {.find = find_16};
    buf_add(&b, "\x80\x02", 2);
    buf_add_str(&b, "ctorch._utils\n_rebuild_tensor_v2\n((\x8c\7storagectorch\nFloatStorage\n"
                    "\x8c\1"
                    "0\x8c\3"
                    "cpu");
    buf_add_str(&b, numel);
    buf_add_str(&b, "tQ");
    buf_add_str(&b, offset);
    buf_addf(&b, "(%st(%st\x89N%s", dims, strides, more);
    buf_add_str(&b, "tR.");
    int rc = pth_unpickle(b.p, b.len, &s, back, &got, &err);
    buf_finish(&b);
    return rc;
}

static int tensor_of(const char *numel, const char *offset, const char *dims, const char *strides)
{
    return tensor_with(numel, offset, dims, strides, "");
}

static void tensors_stay_within_their_storage(void **state)
{
    float out[4];
    assert_int_equal(tensor_of("K\4", "K\1", "K\3", "K\1"), 0);
    assert_int_equal(tensor_of("K\4", "K\2", "K\3", "K\1"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\5", "K\1", "K\1", "K\1"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "K\1", "K\2", "K\4"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "K\1", "M\xff\xffM\xff\xff", "K\1K\1"), DET_ECORRUPT);
    assert_int_equal(
        tensor_of("K\4", "K\1", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\4", "K\1K\1"),
        DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "J\xff\xff\xff\xff", "K\1", "K\1"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "K\1", "K\1K\1", "K\1"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "M\1\1", "", ""), DET_ECORRUPT);
    /* Transposed: gathered by its strides. */
    char zero[] = "J....";
    memset(zero + 1, 0, 4);
    struct buf b = BUF_INIT;
    const struct pth_storages s = {.find = find_16};
    buf_add_str(&b, "ctorch._utils\n_rebuild_tensor_v2\n((\x8c\7storagectorch\nFloatStorage\n"
                    "\x8c\1"
                    "0\x8c\3"
                    "cpuK\4tQ");
    buf_add(&b, zero, 5);
    buf_add_str(&b, "(K\2K\2t(K\1K\2t\x89NtR.");
    assert_int_equal(pth_unpickle(b.p, b.len, &s, back, &got, &err), 0);
    assert_int_equal(pth_tensor_read(got, DET_F32, out, sizeof out, &err), 0);
    assert_memory_equal(out, ((float[]){1, 3, 2, 4}), sizeof out);
    assert_int_equal(pth_tensor_read(got, DET_I64, out, 32, &err), DET_EINVAL);
    assert_int_equal(pth_tensor_read(got, DET_F32, out, 12, &err), DET_EINVAL);
    buf_finish(&b);
}

/* A stride of 0 (as False is read) repeats elements: not without end. */
static void expanded_tensors_are_bounded(void **state)
{
    float out[6];
    assert_int_equal(tensor_of("K\4", "K\1", "K\2K\3", "\x89K\1"), 0);
    assert_int_equal(pth_tensor_read(got, DET_F32, out, sizeof out, &err), 0);
    assert_memory_equal(out, ((float[]){2, 3, 4, 2, 3, 4}), sizeof out);
    assert_int_equal(tensor_of("K\4", "K\1", "K\2K\4", "\x89K\1"), DET_ECORRUPT);
    assert_int_equal(tensor_of("K\4", "K\1", "\x8a\4\1\1\1\1", "\x89"), DET_ETOOBIG);
    assert_non_null(strstr(err.text, "16843009 elements made of 4: save the smaller one"));
    assert_int_equal(
        tensor_of("K\4", "K\1", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\4", "\x89\x89"),
        DET_ECORRUPT);
}

/* Of what is never reached any number may stand in a file: none of them is calculated with. */
static void numbers_of_no_element_are_harmless(void **state)
{
    float out[2];
    assert_int_equal(
        tensor_of("K\4", "K\1", "K\2K\1", "K\2\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), 0);
    assert_int_equal(pth_tensor_read(got, DET_F32, out, sizeof out, &err), 0);
    assert_memory_equal(out, ((float[]){2, 4}), sizeof out);
    assert_int_equal(
        tensor_of("K\4", "K\1", "\x89\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "K\1K\1"),
        DET_ECORRUPT);
    assert_non_null(strstr(err.text, "can be counted"));
}

/* A copy of a view of another storage would take what lies beside its elements, or beyond. */
static void strided_tensors_are_not_saved(void **state)
{
    assert_int_equal(tensor_of("K\4", "K\1", "K\2K\3", "\x89K\1"), 0);
    assert_int_equal(pth_save(path, got, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "save a copy"));
    assert_int_equal(tensor_of("K\4", "K\1", "\x89K\3", "K\3K\1"), 0);
    assert_int_equal(pth_save(path, got, &err), 0);
}

static void what_has_no_place_here_says_what_to_save(void **state)
{
    assert_int_equal(tensor_with("K\4", "K\1", "K\3", "K\1", "}\x8c\3neg\x89s"), 0);
    assert_int_equal(tensor_with("K\4", "K\1", "K\3", "K\1", "}\x8c\3neg\x88s"), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "save x.resolve_neg()"));
    REFUSED("ctorch\nComplexFloatStorage\n.", "torch.ComplexFloatStorage is refused: complex");
    REFUSED("ctorch._utils\n_rebuild_qtensor\n.", "save x.dequantize()");
    REFUSED("ctorch._utils\n_rebuild_sparse_csr_tensor\n.", "save x.to_dense()");
    REFUSED("cargparse\nNamespace\n.", "as model.state_dict() is");
}

static void absent_and_foreign_files(void **state)
{
    assert_int_equal(pth_load("/nonexistent/state_dict.pth", back, &got, &err), DET_ENOENT);
    assert_int_equal(pth_load(path, back, &got, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(pth_load("/tmp", back, &got, &err), DET_ECORRUPT);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* nobody writes to it */
    assert_int_equal(pth_load(path, back, &got, &err), DET_ECORRUPT);
    alarm(0);
}

/* The same state with every size, place and count as zip64 has them, with the digest of its
 * bytes. */
static void zip64_reads_back(void **state)
{
    const struct zip_writer_options all = {.zip64_from = 1};
    char hex[HASH_HEX_MAX], want[HASH_HEX_MAX];
    struct buf file = BUF_INIT;
    float back_weights[6];
    assert_int_equal(pth_save_as(path, sample(), &all, hex, &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &file, &err), 0);
    hash_bytes(HASH_XXH128, file.p, file.len, want);
    assert_string_equal(hex, want);
    assert_int_equal(pth_load(path, back, &got, &err), 0);
    const struct pth_value *model = pth_at(pth_get(got, "models_state_dict"), 0);
    assert_int_equal(pth_tensor_read(pth_get(model, "fc.weight"), DET_F32, back_weights,
                                     sizeof back_weights, &err),
                     0);
    assert_memory_equal(back_weights, weights, sizeof weights);
    buf_finish(&file);
}

static uint32_t le32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Thousands of tensors may be views of one large storage: it is read once, not for each. */
static void content_is_verified_once(void **state)
{
    struct zip_reader zip;
    struct buf file = BUF_INIT;
    const struct zip_entry *entry;
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &file, &err), 0);
    assert_int_equal(zip_reader_init(&zip, file.p, file.len, &err), 0);
    assert_int_equal(zip_reader_get(&zip, "archive", 7, "data/0", &entry, &err), 0);
    char *w = memmem(file.p, file.len, weights, sizeof weights);
    assert_non_null(w);
    *w ^= 1; /* a second look would see it */
    assert_int_equal(zip_reader_get(&zip, "archive", 7, "data/0", &entry, &err), 0);
    zip_reader_finish(&zip);
    buf_finish(&file);
}

/* What follows an entry's content says the same as the directory; the header says only that. */
static void checksums_follow_the_content(void **state)
{
    struct zip_reader zip;
    struct buf file = BUF_INIT;
    static const char unknown[12];
    assert_int_equal(pth_save(path, sample(), &err), 0);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &file, &err), 0);
    assert_int_equal(zip_reader_init(&zip, file.p, file.len, &err), 0);
    assert_true(zip.n > 3);
    for (size_t i = 0; i < zip.n; i++) {
        const char *after = zip.v[i].data + zip.v[i].size;
        assert_memory_equal(after, "PK\7\10", 4);
        assert_int_equal(le32(after + 4), zip.v[i].crc32);
        assert_int_equal(le32(after + 8), zip.v[i].size);
        assert_int_equal(le32(after + 12), zip.v[i].size);
    }
    assert_true(file.p[6] & 8);
    assert_memory_equal(file.p + 14, unknown, sizeof unknown);
    zip_reader_finish(&zip);
    buf_finish(&file);
}

/* In place of a tensor, and enough that all blocks have their turn more than once. */
static struct pth_value *many_blocks(char **ret)
{
    int64_t bytes = (41 << 20) + 12345;
    *ret = det_alloc((size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        (*ret)[i] = (char)(i * i >> 7);
    return pth_tensor(doc, PTH_U8, 1, &bytes, *ret);
}

/* A device without direct writes on which there is never room: the caller hears of it, and no
 * thread waits for another. */
static void full_disk_is_told(void **state)
{
    char hex[HASH_HEX_MAX];
    det_cleanup(freep) char *p = NULL;
    struct pth_value *v = many_blocks(&p);
    assert_int_equal(pth_save_hashed("/dev/full", v, NULL, hex, &err), DET_EIO);
    assert_non_null(strstr(err.text, "/dev/full: No space left"));
    assert_int_equal(pth_save("/dev/full", v, &err), DET_EIO);
    assert_int_equal(pth_save_hashed("/dev/full", sample(), NULL, hex, &err), DET_EIO);
}

static void digest_of_many_blocks(void **state)
{
    char hex[HASH_HEX_MAX], want[HASH_HEX_MAX];
    det_cleanup(freep) char *p = NULL;
    det_cleanup(freep) void *room = aligned_alloc(4096, PTH_ROOM);
    struct pth_value *v = many_blocks(&p);
    assert_int_equal(pth_save_hashed(path, v, room, hex, &err), 0);
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(hash_fd(HASH_XXH128, fd, want, &err), 0);
    assert_string_equal(hex, want);
}

static void more_entries_than_16_bits_count(void **state)
{
    const int64_t three = 3;
    struct pth_value *list = pth_list(doc);
    for (int i = 0; i < 66000; i++)
        pth_push(doc, list, pth_tensor(doc, PTH_U8, 1, &three, (const char *)weights + i % 20));
    assert_int_equal(pth_save(path, list, &err), 0);
    assert_int_equal(pth_load(path, back, &got, &err), 0);
    char last[3];
    assert_int_equal(pth_tensor_read(pth_at(got, 65999), DET_U8, last, 3, &err), 0);
    assert_memory_equal(last, (const char *)weights + 65999 % 20, 3);
}

/* Nothing that is missing there by rights leaves an error behind: an absent "byteorder" did. */
static void older_files_leave_no_error(void **state)
{
    struct det_err none = {0};
    assert_int_equal(pth_load(from_torch, back, &got, &none), 0);
    assert_int_equal(none.code, 0);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(saved_state_reads_back),
        T(equal_states_are_equal_bytes),
        T(plain_pickles_round_trip),
        T(damage_is_survived),
        T(damaged_content_fails_its_checksum),
        T(nothing_is_executed),
        T(broken_pickles_are_refused),
        T(deep_nesting_is_refused),
        T(shared_values_count_at_each_place),
        T(nesting_by_shared_values_is_refused),
        T(tensors_stay_within_their_storage),
        T(expanded_tensors_are_bounded),
        T(numbers_of_no_element_are_harmless),
        T(strided_tensors_are_not_saved),
        T(content_is_verified_once),
        T(what_has_no_place_here_says_what_to_save),
        T(absent_and_foreign_files),
        T(older_files_leave_no_error),
        T(zip64_reads_back),
        T(damage_to_zip64_is_survived),
        T(checksums_follow_the_content),
        T(full_disk_is_told),
        T(digest_of_many_blocks),
        T(more_entries_than_16_bits_count),
    };
    if (argc != 2)
        return 2;
    from_torch = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
