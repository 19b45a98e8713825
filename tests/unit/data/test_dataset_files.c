/* Image folders, CIFAR, token files, and datasets of datasets; files that are wrong in every way.
 * usage: test_dataset_files DIRECTORY      of small images of 21 x 14 pixels */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "data_file.h"
#include "dataset.h"
#include "image.h"
#include "mem.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static const char *images;
static char dir[] = "/tmp/det-files-XXXXXX";
static struct det_err err;
static const struct data_key no_key;

static int setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    return rmdir(dir);
}

static const char *put(const char *name, const void *bytes, size_t n)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    return path;
}

/* ---- decoders ---- */

static int decode(const char *name, const char *bytes, size_t n)
{
    static float out[3 * 14 * 21];
    static const struct det_image_step plan[] = {{DET_CENTER_CROP, .height = 14, .width = 21}, {0}};
    struct image_steps steps;
    struct image_source source;
    struct image_work w = {0};
    struct det_draws draws = {0};
    assert_int_equal(image_steps_init(&steps, plan, 0, 0, &err), 0);
    int rc = image_open(&source, name, bytes, n, IMAGE_PIXELS_MAX, &err);
    if (rc == 0)
        rc = image_steps_run(&steps, &source, &draws, &w, out, &err);
    image_work_finish(&w);
    image_steps_finish(&steps);
    return rc;
}

/* Cut anywhere, an image is refused by its name; a JPEG may lack the two bytes of its end. */
static void cut_images_are_refused(void **state)
{
    static const char *const names[] = {"small.jpg",   "progressive.jpg", "grey.jpg",
                                        "cmyk.jpg",    "rgb.png",         "rgba.png",
                                        "palette.png", "interlaced.png",  "grey16.png"};
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        char path[256];
        det_cleanup(buf_finish) struct buf b = BUF_INIT;
        snprintf(path, sizeof path, "%s/%s", images, names[i]);
        assert_int_equal(data_file_read(path, &b, &err), 0);
        assert_int_equal(decode(names[i], b.p, b.len), 0);
        size_t end = strstr(names[i], ".png") ? b.len - 16 : b.len - 8;
        for (size_t n = 0; n < end; n += 1 + n / 40) {
            det_cleanup(freep) char *exact = det_memdup(b.p, n ? n : 1);
            assert_int_equal(decode(names[i], exact, n), DET_ECORRUPT);
            if (strncmp(err.text, names[i], strlen(names[i])) != 0)
                fail_msg("\"%s\" does not begin with the name", err.text);
        }
    }
}

static void huge_images_are_refused(void **state)
{
    for (int i = 0; i < 2; i++) {
        char path[256];
        det_cleanup(buf_finish) struct buf b = BUF_INIT;
        snprintf(path, sizeof path, "%s/bomb.%s", images, i ? "png" : "jpg");
        assert_int_equal(data_file_read(path, &b, &err), 0);
        assert_int_equal(decode("bomb", b.p, b.len), DET_ETOOBIG);
        assert_non_null(strstr(err.text, "pixels_max"));
    }
    assert_int_equal(decode("text", "hello, world", 12), DET_ECORRUPT);
}

static void add_be32(struct buf *b, uLong v)
{
    buf_add(b, (const char[]){(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v}, 4);
}

#define TEXT_BYTES ((uLong)7 << 20)

/* A chunk of 7 MiB of text in 7 KiB. */
static void add_packed_text(struct buf *b)
{
    static unsigned char text[TEXT_BYTES], chunk[1 << 15] = "zTXtkey";
    uLong n = sizeof chunk - 9;
    memset(text, 'a', TEXT_BYTES);
    assert_int_equal(compress(chunk + 9, &n, text, TEXT_BYTES), Z_OK);
    add_be32(b, n + 5);
    buf_add(b, chunk, n + 9);
    add_be32(b, crc32(0, chunk, (uInt)n + 9));
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* A process of its own has a peak of its own. */
static void packed_texts_take_no_memory(void **state)
{
    char path[256];
    const size_t head = 33; /* signature and IHDR */
    det_cleanup(buf_finish) struct buf b = BUF_INIT, bomb = BUF_INIT;
    snprintf(path, sizeof path, "%s/rgb.png", images);
    assert_int_equal(data_file_read(path, &b, &err), 0);
    buf_add(&bomb, b.p, head);
    for (int i = 0; i < 40; i++)
        add_packed_text(&bomb);
    buf_add(&bomb, b.p + head, b.len - head);
    pid_t pid = fork();
    if (pid == 0) {
        long before = peak_kib();
        int rc = decode("texts", bomb.p, bomb.len);
        _exit(rc < 0 ? 2 : peak_kib() - before > 100 << 10);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- steps ---- */

static void wrong_steps_are_refused(void **state)
{
    static const struct {
        struct det_image_step steps[3];
        const char *says;
    } wrong[] = {
        {{{.op = DET_CENTER_CROP}}, "step 1 needs .size"},
        {{{DET_CENTER_CROP, .size = -1}}, "step 1 needs .size"},
        {{{DET_CENTER_CROP, .size = 9}, {DET_RANDOM_CROP, .size = 9, .padding = -1}}, "step 2"},
        {{{DET_NORMALIZE, .std = {1, 1, 1}}, {DET_CENTER_CROP, .size = 9}}, "must be the last"},
        {{{DET_CENTER_CROP, .size = 9}, {.op = DET_NORMALIZE}}, "standard deviations"},
        {{{DET_RANDOM_RESIZED_CROP, .size = 9, .scale = {0.5, 0.1}}}, "scale or ratio"},
        {{{DET_RANDOM_HORIZONTAL_FLIP, .p = 1.5}}, "probability"},
        {{{DET_COLOR_JITTER, .contrast = -1}}, "negative"},
        {{{.op = 99}}, "none of enum"},
    };
    struct image_steps s;
    for (size_t i = 0; i < DET_ARRAY_LEN(wrong); i++) {
        assert_int_equal(image_steps_init(&s, wrong[i].steps, 0, 0, &err), DET_EINVAL);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i].says);
    }
}

/* ---- image folders ---- */

static bool readdir_fails;

/* In place of the C library's. */
struct dirent *readdir(DIR *d)
{
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    struct dirent *e = next(d);
    if (e || !readdir_fails)
        return e;
    errno = EIO;
    return NULL;
}

/* Names that a directory did not give would be records that are missing in silence. */
static void half_a_directory_is_refused(void **state)
{
    static const struct det_image_step steps[] = {{DET_CENTER_CROP, .size = 8}, {0}};
    struct det_image_folder_options o = {.path = dir, .steps = steps};
    readdir_fails = true;
    assert_null(det_dataset_image_folder(&o, &err));
    readdir_fails = false;
    assert_int_equal(err.code, DET_EIO);
    assert_non_null(strstr(err.text, "read /tmp/det-files-"));
}

static void wrong_folders_are_refused(void **state)
{
    static const struct det_image_step steps[] = {{DET_CENTER_CROP, .size = 8}, {0}};
    struct det_image_folder_options o = {.path = dir, .steps = steps};
    assert_null(det_dataset_image_folder(&o, &err));
    assert_non_null(strstr(err.text, "no subdirectories"));
    char class[300];
    snprintf(class, sizeof class, "%s/cats", dir);
    assert_int_equal(mkdir(class, 0700), 0);
    assert_null(det_dataset_image_folder(&o, &err));
    assert_non_null(strstr(err.text, "cats has no JPEG"));
    put("cats/1.bmp", "BM", 2);
    assert_null(det_dataset_image_folder(&o, &err));
    assert_non_null(strstr(err.text, "1.bmp"));
    unlink(put("cats/1.bmp", "", 0));
    put("cats/1.jpg", "no picture", 10);
    float x[3 * 8 * 8];
    int64_t y;
    struct det_dataset *ds = det_dataset_image_folder(&o, &err);
    assert_non_null(ds);
    assert_int_equal(dataset_read(ds, 0, no_key, (void *[]){x, &y}, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "cats/1.jpg: neither"));
    assert_string_equal(det_dataset_class_name(ds, 0), "cats");
    assert_null(det_dataset_class_name(ds, 1));
    unlink(put("cats/1.jpg", "", 0));
    assert_int_equal(dataset_read(ds, 0, no_key, (void *[]){x, &y}, &err), DET_EIO);
    det_dataset_unref(ds);
    rmdir(class);
    o.path = "/nonexistent";
    assert_null(det_dataset_image_folder(&o, &err));
    assert_int_equal(err.code, DET_ENOENT);
}

/* A PNG of 21 pixels by `height`, by its header. */
static void put_image(const char *to, char height)
{
    det_cleanup(freep) char *path = det_asprintf("%s/rgb.png", images);
    det_cleanup(buf_finish) struct buf b = BUF_INIT, crc = BUF_INIT;
    assert_int_equal(data_file_read(path, &b, &err), 0);
    b.p[23] = height;
    add_be32(&crc, crc32(0, (unsigned char *)b.p + 12, 17));
    memcpy(b.p + 29, crc.p, 4);
    put(to, b.p, b.len);
}

/* A flip fixes no size, nor does the shorter side; a folder of images of one size needs none. */
static void images_of_one_size_need_no_crop(void **state)
{
    static const struct det_image_step flip[] = {{.op = DET_RANDOM_HORIZONTAL_FLIP}, {0}};
    static const struct det_image_step shorter[] = {{DET_RESIZE, .size = 7}, {0}};
    const struct det_image_step *const steps[] = {NULL, flip, shorter};
    det_cleanup(freep) char *class = det_asprintf("%s/cats", dir);
    float x[3 * 14 * 21];
    int64_t y;
    assert_int_equal(mkdir(class, 0700), 0);
    put_image("cats/1.png", 14);
    put_image("cats/2.png", 14);
    put_image("cats/3.png", 13);
    for (size_t i = 0; i < DET_ARRAY_LEN(steps); i++) {
        struct det_image_folder_options o = {.path = dir, .steps = steps[i]};
        struct det_dataset *ds = det_dataset_image_folder(&o, &err);
        if (!ds)
            fail_msg("%s", err.text);
        assert_int_equal(dataset_read(ds, 1, no_key, (void *[]){x, &y}, &err), 0);
        assert_int_equal(dataset_read(ds, 2, no_key, (void *[]){x, &y}, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, "cats/3.png"));
        assert_non_null(strstr(err.text, "differ in size"));
        det_dataset_unref(ds);
    }
    unlink(put("cats/1.png", "", 0));
    unlink(put("cats/2.png", "", 0));
    unlink(put("cats/3.png", "", 0));
    rmdir(class);
}

/* Nobody writes to it: to open it would wait for ever. */
static void pipes_are_refused(void **state)
{
    struct det_image_step steps[] = {{DET_CENTER_CROP, .size = 8}, {0}};
    struct det_image_folder_options folder = {.path = dir, .steps = steps};
    det_cleanup(freep) char *class = det_asprintf("%s/cats", dir);
    det_cleanup(freep) char *pipe = det_asprintf("%s/1.jpg", class);
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    float x[3 * 8 * 8];
    int64_t y;
    assert_int_equal(mkdir(class, 0700), 0);
    unlink(put("cats/1.jpg", "", 0));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    alarm(20);
    assert_int_equal(data_file_read(pipe, &out, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "1.jpg: not a regular file"));
    struct det_token_options tokens = {.path = pipe, .sequence = 2};
    assert_null(det_dataset_tokens(&tokens, &err));
    struct det_dataset *ds = det_dataset_image_folder(&folder, &err);
    assert_true(!ds || dataset_read(ds, 0, no_key, (void *[]){x, &y}, &err) < 0);
    det_dataset_unref(ds);
    alarm(0);
    unlink(pipe);
    rmdir(class);
}

/* ---- CIFAR ---- */

static void cifar_is_read(void **state)
{
    static uint8_t records[2][3074];
    static float x[3 * 32 * 32];
    int64_t label, coarse;
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 3072; i++)
            records[r][2 + i] = (uint8_t)(i * 7 + r);
    records[0][0] = 4, records[0][1] = 9, records[1][0] = 19, records[1][1] = 99;
    const char *path = put("c100.bin", records, sizeof records);
    const char *const files[] = {path, path, NULL};
    struct det_cifar_options o = {.files = files, .cifar100 = true};
    struct det_dataset *ds = det_dataset_cifar(&o, &err);
    assert_int_equal(det_dataset_length(ds), 4);
    assert_int_equal(dataset_read(ds, 3, no_key, (void *[]){x, &label, &coarse}, &err), 0);
    assert_int_equal(label, 99);
    assert_int_equal(coarse, 19);
    for (int i = 0; i < 3072; i++)
        assert_true(x[i] == (float)(uint8_t)(i * 7 + 1) / 255);
    det_dataset_unref(ds);
    o.cifar100 = false;
    assert_null(det_dataset_cifar(&o, &err)); /* 6148 is no multiple of 3073 */
    assert_non_null(strstr(err.text, "c100.bin"));
    put("c100.bin", records[0], 3073);
    ds = det_dataset_cifar(&o, &err);
    assert_int_equal(det_dataset_length(ds), 2);
    det_dataset_unref(ds);
    records[0][0] = 10;
    put("c100.bin", records[0], 3073);
    assert_null(det_dataset_cifar(&o, &err));
    assert_non_null(strstr(err.text, "label is 10 of 10 classes"));
    unlink(path);
    assert_null(det_dataset_cifar(&o, &err));
    o.files = (const char *const[]){NULL};
    assert_null(det_dataset_cifar(&o, &err));
}

/* Records made by chance: the same for a key, others for another. */
static void steps_on_a_dataset(void **state)
{
    static uint8_t pixels[2 * 1 * 6 * 6];
    static const struct det_image_step steps[] = {{DET_RANDOM_CROP, .size = 4, .padding = 2}, {0}};
    float a[3 * 16], b[3 * 16], sum = 0;
    int64_t labels[] = {7, 8}, label;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i + 1);
    struct det_dataset *ds = det_dataset_create(2, &err);
    det_dataset_add(ds, "picture", DET_U8, 3, (int64_t[]){1, 6, 6}, pixels, &err);
    det_dataset_add(ds, "label", DET_I64, 0, NULL, labels, &err);
    assert_null(det_dataset_images(det_dataset_ref(ds), "nothing", steps, &err));
    assert_null(det_dataset_images(det_dataset_ref(ds), "label", steps, &err));
    ds = det_dataset_images(ds, "picture", steps, &err);
    assert_int_equal(dataset_read(ds, 1, (struct data_key){1, 2}, (void *[]){a, &label}, &err), 0);
    assert_int_equal(label, 8);
    assert_memory_equal(a, a + 16, 16 * sizeof *a); /* grey: three equal colours */
    assert_int_equal(dataset_read(ds, 1, (struct data_key){1, 2}, (void *[]){b, &label}, &err), 0);
    assert_memory_equal(a, b, sizeof a);
    for (int e = 0; e < 9; e++) {
        det_ignore(dataset_read(ds, 1, (struct data_key){1, e}, (void *[]){b, &label}, &err),
                   "the next line looks");
        sum += memcmp(a, b, sizeof a) != 0;
    }
    assert_true(sum >= 5);
    det_dataset_unref(ds);
}

/* ---- tokens ---- */

static void tokens_are_read(void **state)
{
    static const size_t sizes[] = {2, 4, 8};
    for (int type = 0; type < 3; type++) {
        char bytes[11 * 8];
        int64_t input[3], target[3];
        for (int64_t i = 0; i < 11; i++)
            memcpy(bytes + (size_t)i * sizes[type], &i, sizes[type]); /* little-endian */
        const char *path = put("tokens.bin", bytes, 11 * sizes[type]);
        struct det_token_options o = {
            .path = path, .type = (enum det_token_type)type, .sequence = 3, .vocabulary = 11};
        struct det_dataset *ds = det_dataset_tokens(&o, &err);
        assert_int_equal(det_dataset_length(ds), 3);
        assert_int_equal(dataset_read(ds, 2, no_key, (void *[]){input, target}, &err), 0);
        assert_memory_equal(input, ((int64_t[]){6, 7, 8}), sizeof input);
        assert_memory_equal(target, ((int64_t[]){7, 8, 9}), sizeof target);
        det_dataset_unref(ds);
        o.stride = 1;
        o.vocabulary = 10;
        ds = det_dataset_tokens(&o, &err);
        assert_int_equal(det_dataset_length(ds), 8);
        assert_int_equal(dataset_read(ds, 6, no_key, (void *[]){input, target}, &err), 0);
        assert_int_equal(dataset_read(ds, 7, no_key, (void *[]){input, target}, &err),
                         DET_ECORRUPT);
        assert_non_null(strstr(err.text, "token 10 is 10"));
        det_dataset_unref(ds);
        o.sequence = 11;
        assert_null(det_dataset_tokens(&o, &err));
        o.sequence = 0;
        assert_null(det_dataset_tokens(&o, &err));
        o.sequence = 2;
        put("tokens.bin", bytes, 11 * sizes[type] - 1);
        assert_null(det_dataset_tokens(&o, &err));
        unlink(path);
        assert_null(det_dataset_tokens(&o, &err));
        assert_int_equal(err.code, DET_ENOENT);
    }
}

/* ---- datasets of datasets ---- */

static struct det_dataset *numbers(int64_t n, int64_t first)
{
    det_cleanup(freep) int64_t *v = det_alloc(sizeof *v * (size_t)n);
    struct det_dataset *ds = det_dataset_create(n, &err);
    for (int64_t i = 0; i < n; i++)
        v[i] = first + i;
    det_dataset_add(ds, "i", DET_I64, 0, NULL, v, &err);
    return ds;
}

static void datasets_side_by_side(void **state)
{
    int64_t a, b;
    struct det_dataset *left = numbers(5, 0);
    struct det_dataset_part parts[] = {{"left", det_dataset_slice(left, 1, 3, &err)},
                                       {"right", numbers(3, 100)}};
    det_dataset_unref(left);
    struct det_dataset *ds = det_dataset_zip(parts, 2, &err);
    assert_int_equal(det_dataset_length(ds), 3);
    assert_int_equal(dataset_field(ds, "left.i"), 0);
    assert_int_equal(dataset_field(ds, "right.i"), 1);
    assert_int_equal(dataset_read(ds, 2, no_key, (void *[]){&a, &b}, &err), 0);
    assert_int_equal(a, 3);
    assert_int_equal(b, 102);
    det_dataset_unref(ds);
    parts[0].ds = numbers(2, 0);
    parts[1].ds = numbers(3, 0);
    assert_null(det_dataset_zip(parts, 2, &err));
    parts[0].ds = numbers(2, 0);
    parts[1].ds = NULL;
    assert_null(det_dataset_zip(parts, 2, &err));
    assert_null(det_dataset_zip(parts, 0, &err));
}

static void datasets_one_after_another(void **state)
{
    int64_t v;
    struct det_dataset *parts[] = {numbers(2, 0), numbers(1, 50), numbers(3, 100)};
    struct det_dataset *ds = det_dataset_concat(parts, 3, &err);
    static const int64_t want[] = {0, 1, 50, 100, 101, 102};
    assert_int_equal(det_dataset_length(ds), 6);
    for (int64_t i = 0; i < 6; i++) {
        assert_int_equal(dataset_read(ds, i, no_key, (void *[]){&v}, &err), 0);
        assert_int_equal(v, want[i]);
    }
    det_dataset_unref(ds);
    struct det_dataset *other = det_dataset_create(1, &err);
    det_dataset_add(other, "j", DET_I64, 0, NULL, want, &err);
    assert_null(det_dataset_concat((struct det_dataset *[]){numbers(1, 0), other}, 2, &err));
    assert_null(det_dataset_concat(parts, 0, &err));
}

/* As many records as of any missing file, of every class, and the error is forgotten. */
static void test_missing_files_are_made_up(void **state)
{
    (void)state;
    const char *const files[] = {"/nowhere/data_batch_1.bin", NULL};
    const struct det_image_step crop[] = {{DET_CENTER_CROP, .size = 8}, {0}};
    const struct det_cifar_options cifar = {.files = files};
    const struct det_token_options tokens = {
        .path = "/nowhere/t.u16", .sequence = 5, .vocabulary = 11};
    const struct det_image_folder_options folder = {.path = "/nowhere/train", .steps = crop};
    assert_null(det_dataset_cifar(&cifar, &err));
    data_fake(true);
    err = (struct det_err){0};
    struct det_dataset *all[] = {det_dataset_cifar(&cifar, &err), det_dataset_tokens(&tokens, &err),
                                 det_dataset_image_folder(&folder, &err)};
    for (int i = 0; i < 3; i++) {
        assert_non_null(all[i]);
        assert_int_equal(err.code, 0);
        assert_int_equal(det_dataset_length(all[i]), DATASET_FAKE_RECORDS);
    }
    assert_string_equal(det_dataset_class_name(all[2], 1), "class 1");
    struct det_dataset *fake = dataset_fake(all[2], &err);
    float image[3 * 8 * 8];
    int64_t label = -1;
    assert_int_equal(dataset_read(fake, 1, (struct data_key){0}, (void *[]){image, &label}, &err),
                     0);
    assert_true(label == 0 || label == 1);
    det_dataset_unref(all[0]);
    det_dataset_unref(all[1]);
    det_dataset_unref(fake);
    const struct det_csv_field x[] = {{.name = "x", .columns = 2}, {0}};
    const struct det_csv_options csv = {.fields = x};
    const struct det_idx_options idx = {.images = "/nowhere/images"};
    struct det_dataset *quiet[] = {det_dataset_csv("/nowhere/x.csv", &csv, NULL),
                                   det_dataset_idx(&idx, NULL)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(det_dataset_length(quiet[i]), DATASET_FAKE_RECORDS);
        det_dataset_unref(quiet[i]);
    }
    data_fake(false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_files_are_made_up),
        cmocka_unit_test(cut_images_are_refused),
        cmocka_unit_test(huge_images_are_refused),
        cmocka_unit_test(packed_texts_take_no_memory),
        cmocka_unit_test(wrong_steps_are_refused),
        cmocka_unit_test(half_a_directory_is_refused),
        cmocka_unit_test(images_of_one_size_need_no_crop),
        cmocka_unit_test(pipes_are_refused),
        cmocka_unit_test(wrong_folders_are_refused),
        cmocka_unit_test(cifar_is_read),
        cmocka_unit_test(steps_on_a_dataset),
        cmocka_unit_test(tokens_are_read),
        cmocka_unit_test(datasets_side_by_side),
        cmocka_unit_test(datasets_one_after_another),
    };
    if (argc != 2)
        return 2;
    images = argv[1];
    return cmocka_run_group_tests_name("dataset_files", tests, setup, teardown);
}
