/* Datasets: fields, views, and the readers against files that are wrong in every way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "dataset.h"
#include "mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char path[] = "/tmp/det-data-XXXXXX", path2[] = "/tmp/det-data-XXXXXX";
static struct det_err err;
static const struct data_key no_key;

static int make(char *name)
{
    memcpy(name + strlen(name) - 6, "XXXXXX", 6);
    int fd = mkstemp(name);
    return fd < 0 ? -1 : close(fd);
}

static int setup(void **state)
{
    return make(path) | make(path2);
}

static int teardown(void **state)
{
    return unlink(path) | unlink(path2);
}

static void put(const char *name, const void *bytes, size_t n, bool gz)
{
    if (gz) {
        gzFile f = gzopen(name, "wb");
        assert_int_equal(gzwrite(f, bytes, (unsigned)n), (int)n);
        gzclose(f);
        return;
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* ---- in memory, views ---- */

static struct det_dataset *counting(int64_t n)
{
    struct det_dataset *ds = det_dataset_create(n, &err);
    int64_t *v = det_alloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = i;
    assert_int_equal(det_dataset_add(ds, "i", DET_I64, 0, NULL, v, &err), 0);
    free(v);
    return ds;
}

static int64_t value(const struct det_dataset *ds, int64_t i)
{
    int64_t v = -1;
    void *out[] = {&v};
    assert_int_equal(dataset_read(ds, i, no_key, out, &err), 0);
    return v;
}

static bool odd(void *arg, int64_t i)
{
    return i % 2 == 1;
}

static void views_compose(void **state)
{
    struct det_dataset *all = counting(20);
    struct det_dataset *odds = det_dataset_filter(all, odd, NULL, &err);   /* 1 3 5 .. 19 */
    struct det_dataset *part = det_dataset_slice(odds, 2, 5, &err);        /* 5 7 9 11 13 */
    struct det_dataset *twice = det_dataset_filter(part, odd, NULL, &err); /* 7 11 */
    struct det_dataset *tail = det_dataset_slice(all, 15, 5, &err);
    struct det_dataset *tail2 = det_dataset_slice(tail, 1, 3, &err); /* 16 17 18 */
    det_dataset_unref(all);
    det_dataset_unref(odds);
    assert_int_equal(det_dataset_length(part), 5);
    assert_int_equal(value(part, 4), 13);
    assert_int_equal(det_dataset_length(twice), 2);
    assert_int_equal(value(twice, 1), 11);
    assert_int_equal(value(tail2, 2), 18);
    assert_null(det_dataset_slice(tail, 4, 2, &err));
    assert_null(det_dataset_slice(tail, -1, 1, &err));
    assert_null(det_dataset_slice(tail, INT64_MAX, INT64_MAX, &err));
    det_dataset_unref(part);
    det_dataset_unref(twice);
    det_dataset_unref(tail);
    det_dataset_unref(tail2);
}

static void wrong_fields_are_refused(void **state)
{
    struct det_dataset *ds = counting(2);
    int64_t bad = -1, huge[DET_DIMS_MAX] = {INT64_MAX, INT64_MAX, 2};
    assert_int_equal(det_dataset_add(ds, "i", DET_I64, 0, NULL, "", &err), DET_EINVAL);
    assert_int_equal(det_dataset_add(ds, "", DET_I64, 0, NULL, "", &err), DET_EINVAL);
    assert_int_equal(det_dataset_add(ds, "a", DET_DTYPE_COUNT, 0, NULL, "", &err), DET_EINVAL);
    assert_int_equal(det_dataset_add(ds, "a", DET_F32, 1, &bad, "", &err), DET_EINVAL);
    assert_int_equal(det_dataset_add(ds, "a", DET_F32, 3, huge, "", &err), DET_EINVAL);
    assert_int_equal(det_dataset_add(ds, "a", DET_F32, DET_DIMS_MAX, huge, "", &err), DET_EINVAL);
    det_dataset_unref(ds);
    assert_null(det_dataset_create(-1, &err));
    assert_null(det_dataset_filter(NULL, odd, NULL, &err));
}

static int destroyed;

static int get_square(void *self, int64_t index, void *const *out, struct det_err *e)
{
    float v = (float)(index * index);
    if (index == 3)
        return det_fail(e, DET_EIO, "the disk is gone");
    memcpy(out[0], &v, sizeof v);
    return 0;
}

static void on_destroy(void *self)
{
    destroyed++;
}

static void callbacks_make_records(void **state)
{
    static const struct det_dataset_type type = {.get = get_square, .destroy = on_destroy};
    const struct det_field field = {.name = "x", .dtype = DET_F32};
    destroyed = 0;
    struct det_dataset *ds = det_dataset_callback(&type, NULL, 5, &field, 1, &err);
    float v;
    void *out[] = {&v};
    assert_int_equal(dataset_read(ds, 2, no_key, out, &err), 0);
    assert_true(v == 4);
    assert_int_equal(dataset_read(ds, 3, no_key, out, &err), DET_EIO);
    assert_string_equal(err.text, "record 3: the disk is gone");
    det_dataset_unref(ds);
    assert_int_equal(destroyed, 1);
    const struct det_field wrong = {.name = "x", .dtype = DET_F32, .ndim = -1};
    assert_null(det_dataset_callback(&type, NULL, 5, &wrong, 1, &err));
    assert_int_equal(destroyed, 2);
}

/* ---- CSV ---- */

static const struct det_csv_field two_fields[] = {
    {"x", .columns = 2, .dtype = DET_F32, .scale = 0.5, .offset = 1},
    {"y", .first = 2, .columns = 1, .dtype = DET_I64},
    {0},
};

static struct det_dataset *csv(const char *text, bool header)
{
    const struct det_csv_options o = {.fields = two_fields, .header = header};
    put(path, text, strlen(text), false);
    return det_dataset_csv(path, &o, &err);
}

static void csv_is_read(void **state)
{
    static const char text[] = "a,b,c\r\n1, 2.5,7\r\n\r\n-4,1e1,-3";
    for (int gz = 0; gz < 2; gz++) {
        float x[2];
        int64_t y;
        void *out[] = {x, &y};
        const struct det_csv_options o = {.fields = two_fields, .header = true};
        put(path, text, sizeof text - 1, gz);
        struct det_dataset *ds = det_dataset_csv(path, &o, &err);
        assert_non_null(ds);
        assert_int_equal(det_dataset_length(ds), 2);
        assert_int_equal(dataset_read(ds, 1, no_key, out, &err), 0);
        assert_true(x[0] == -1 && x[1] == 6 && y == -3);
        det_dataset_unref(ds);
    }
}

/* Every spelling gives strtod's double. */
static void numbers_are_exact(void **state)
{
    /* clang-format off */
    static const char *const spellings[] = {
        "0", "-1", "0.1", "-0.3", "16", "123456789012345", "1234567890123456", "0.000000000000001",
        "99999999999999.9", "1.", "+1", "1e3", "1.5E-3", ".5", "0x10", "3.14159265358979", "007"};
    /* clang-format on */
    static const struct det_csv_field field[] = {{"x", .columns = 1, .dtype = DET_F32}, {0}};
    const struct det_csv_options o = {.fields = field};
    for (size_t i = 0; i < DET_ARRAY_LEN(spellings); i++) {
        float x, want = (float)strtod(spellings[i], NULL);
        void *out[] = {&x};
        put(path, spellings[i], strlen(spellings[i]), false);
        struct det_dataset *ds = det_dataset_csv(path, &o, &err);
        assert_non_null(ds);
        assert_int_equal(dataset_read(ds, 0, no_key, out, &err), 0);
        assert_memory_equal(&x, &want, sizeof x);
        det_dataset_unref(ds);
    }
}

static void wrong_csv_names_the_line(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "no records"},           {"\n\n", "no records"},       {"1,2,3\n1,2\n", "line 2"},
        {"1,2,3\n1,2,3,4", "line 2"}, {"1,2,x\n", "line 1"},        {"1,,3\n", "missing"},
        {"1,2,\n", "missing"},        {"1,2,3 4\n", "line 1"},      {"1,nan,3\n", "finite"},
        {"1,1e999,3\n", "finite"},    {"1,2,3.5\n", "field \"y\""}, {"1,2,1e30\n", "field \"y\""},
        {"1,2\n", "columns 2 to 2"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(wrong); i++) {
        assert_null(csv(wrong[i].text, false));
        if (!strstr(err.text, wrong[i].says) || !strstr(err.text, path))
            fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i].says);
    }
    put(path, "1,2\0,3", 6, false);
    const struct det_csv_options o = {.fields = two_fields};
    assert_null(det_dataset_csv(path, &o, &err));
    assert_null(det_dataset_csv("/nonexistent.csv", &o, &err));
    assert_int_equal(err.code, DET_ENOENT);
    assert_null(det_dataset_csv("/tmp", &o, &err));
}

static void damaged_gzip_is_refused(void **state)
{
    char bytes[4096];
    const struct det_csv_options o = {.fields = two_fields};
    put(path, "1,2,3\n4,5,6\n7,8,9\n", 18, true);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    for (ssize_t cut = 11; cut < n; cut++) {
        put(path2, "", 0, false);
        put(path2, bytes, (size_t)cut, false);
        struct det_dataset *ds = det_dataset_csv(path2, &o, &err);
        assert_null(ds);
        assert_int_equal(err.code, DET_ECORRUPT);
    }
}

/* ---- IDX ---- */

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 51, 102};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

static void idx_is_read(void **state)
{
    float x[2];
    int64_t y;
    void *out[] = {x, &y};
    put(path, images, sizeof images, true);
    put(path2, labels, sizeof labels, false);
    const struct det_idx_options o = {.images = path, .labels = path2};
    struct det_dataset *ds = det_dataset_idx(&o, &err);
    assert_non_null(ds);
    assert_int_equal(dataset_read(ds, 1, no_key, out, &err), 0);
    assert_true(x[0] == (float)0.2 && x[1] == (float)0.4 && y == 9);
    det_dataset_unref(ds);
}

static void wrong_idx_is_refused(void **state)
{
    const struct det_idx_options o = {.images = path, .labels = path2};
    uint8_t bytes[sizeof images];
    put(path2, labels, sizeof labels, false);
    for (size_t n = 0; n < sizeof images; n++) {
        put(path, images, n, false);
        assert_null(det_dataset_idx(&o, &err));
    }
    for (size_t i = 0; i < 16; i++) {
        memcpy(bytes, images, sizeof bytes);
        bytes[i] ^= 0x80;
        put(path, bytes, sizeof bytes, false);
        assert_null(det_dataset_idx(&o, &err));
        assert_non_null(strstr(err.text, path));
    }
    put(path, images, sizeof images, false);
    memcpy(bytes, labels, sizeof labels);
    bytes[7] = 1;
    put(path2, bytes, sizeof labels - 1, false);
    assert_null(det_dataset_idx(&o, &err));
    assert_non_null(strstr(err.text, "2 images"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(views_compose),           T(wrong_fields_are_refused),
        T(callbacks_make_records),  T(csv_is_read),
        T(numbers_are_exact),       T(wrong_csv_names_the_line),
        T(damaged_gzip_is_refused), T(idx_is_read),
        T(wrong_idx_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
