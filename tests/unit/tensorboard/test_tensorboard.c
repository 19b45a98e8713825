/* The writer's own rules: nothing twice, a torn file is no obstacle, errors stick. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "dtype.h"
#include "hash.h"
#include "tb.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/det-tb-XXXXXX";
static struct det_err err;

static int setup(void **state)
{
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    err = (struct det_err){0};
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    return fsx_remove_tree(AT_FDCWD, dir, NULL);
}

struct seen {
    int n;
    int64_t sum;
};

static void on_tag(void *arg, const char *tag, size_t tag_bytes, int64_t step)
{
    struct seen *s = arg;
    assert_memory_equal(tag, "x", tag_bytes);
    s->n++;
    s->sum += step;
}

static int on_file(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *e)
{
    struct buf data = BUF_INIT;
    char full[512];
    snprintf(full, sizeof full, "%s/%s", dir, path);
    assert_int_equal(fsx_read_file(AT_FDCWD, full, 1 << 20, &data, e), 0);
    assert_int_equal(tfevents_read(data.p, data.len, on_tag, arg, e), 0);
    buf_finish(&data);
    return 0;
}

static struct seen read_all(void)
{
    struct seen s = {0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fsx_walk(fd, on_file, &s, &err), 0);
    close(fd);
    return s;
}

static void write_steps(int64_t from, int64_t to)
{
    struct det_tensorboard *w = det_tensorboard_create(dir, &err);
    for (int64_t i = from; i < to; i++)
        det_tensorboard_add_scalar(w, "x", 1, i);
    assert_int_equal(det_tensorboard_error(w, &err), 0);
    det_tensorboard_destroy(w);
}

static void a_step_is_written_once(void **state)
{
    write_steps(0, 10);
    write_steps(5, 15);
    struct seen s = read_all();
    assert_int_equal(s.n, 15);
    assert_int_equal(s.sum, 14 * 15 / 2);
}

static int cut(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *e)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", dir, path);
    return truncate(full, (off_t)bytes - 5);
}

static void what_a_crash_cut_off_is_written_again(void **state)
{
    write_steps(0, 10);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fsx_walk(fd, cut, NULL, &err), 0);
    close(fd);
    assert_int_equal(read_all().n, 9);
    write_steps(0, 12);
    assert_int_equal(read_all().n, 12);
}

static void a_closed_writer_opens_a_new_file(void **state)
{
    struct det_tensorboard *w = det_tensorboard_create(dir, &err);
    det_tensorboard_add_scalar(w, "x", 1, 0);
    det_tensorboard_close(w);
    det_tensorboard_add_scalar(w, "x", 1, 1);
    det_tensorboard_destroy(w);
    assert_int_equal(read_all().n, 2);
}

static int add_name(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *e)
{
    const char *slash = strrchr(path, '/');
    if (!is_dir)
        imap_put(arg, hash_fnv64(slash + 1, strlen(slash + 1)), arg);
    return 0;
}

/* Two runs of a trial within one second, each with the same pid; their files lie side by side in a
 * store. */
static void files_of_two_runs_have_two_names(void **state)
{
    static const char *const runs[] = {"a", "b", "c", "d"};
    struct imap *names = imap_create();
    for (size_t i = 0; i < 4; i++) {
        char run[64];
        snprintf(run, sizeof run, "%s/%s", dir, runs[i]);
        struct det_tensorboard *w = det_tensorboard_create(run, &err);
        det_tensorboard_add_scalar(w, "x", 1, 0);
        det_tensorboard_destroy(w);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fsx_walk(fd, add_name, names, &err), 0);
    close(fd);
    assert_int_equal(imap_size(names), 4);
    imap_destroy(names);
}

static void errors_stick(void **state)
{
    char under[64];
    snprintf(under, sizeof under, "%s/file", dir);
    close(open(under, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    struct det_tensorboard *w = det_tensorboard_create(under, &err);
    det_tensorboard_add_scalar(w, "x", 1, 0);
    assert_true(det_tensorboard_error(w, &err) < 0);
    assert_non_null(strstr(err.text, under));
    det_tensorboard_add_image(w, "y", NULL, DET_IMAGE_CHW, 0);
    assert_true(det_tensorboard_error(w, NULL) < 0);
    det_tensorboard_destroy(w);
    w = det_tensorboard_create(dir, &err);
    det_tensorboard_add_image(w, "y", NULL, DET_IMAGE_CHW, 0);
    assert_int_equal(det_tensorboard_error(w, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "\"y\""));
    det_tensorboard_destroy(w);
    w = det_tensorboard_create(dir, &err);
    det_tensorboard_add_text(w, NULL, "words", 0);
    assert_int_equal(det_tensorboard_error(w, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "needs a tag"));
    det_tensorboard_destroy(w);
    assert_null(det_tensorboard_create("", &err));
    det_tensorboard_add_scalar(NULL, "x", 1, 0);
    det_tensorboard_flush(NULL);
}

static void every_dtype_is_read(void **state)
{
    struct det_tensorboard *w = det_tensorboard_create(dir, &err);
    for (int d = 0; d < DET_DTYPE_COUNT; d++) {
        uint8_t bytes[2][8] = {0};
        size_t size = det_dtype_size((enum det_dtype)d);
        det__store_f64((enum det_dtype)d, &bytes[0][size], 1);
        struct det_tensor *t =
            det_host_tensor_view((enum det_dtype)d, 1, (const int64_t[]){2}, bytes, &err);
        double *v = tb_values(w, "x", t);
        assert_non_null(v);
        assert_true(v[0] == 0 && v[1] == 1);
        free(v);
        det_tensor_unref(t);
    }
    det_tensorboard_destroy(w);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_step_is_written_once),
                                       T(what_a_crash_cut_off_is_written_again),
                                       T(a_closed_writer_opens_a_new_file),
                                       T(files_of_two_runs_have_two_names),
                                       T(errors_stick),
                                       T(every_dtype_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
