/* A directory of classes of images. */
#include "dataset.h"
#include "image_pool.h"
#include "vec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX     ((off_t)512 << 20)
#define DEPTH_MAX    32
#define FAKE_CLASSES 2 /* of a folder that is missing; labels are made up from 0 to 1 */

struct file {
    char *path;
    int64_t label;
};

struct folder {
    VEC(char *) classes;
    VEC(struct file) files;
    struct image_steps steps;
    struct image_pool *pool;
    int64_t pixels_max;
    int first_height, first_width; /* of the first file where it sets the size; else 0 */
};

typedef VEC(char *) names;

static void names_finish(names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->v[i]);
    vec_free(n);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The sorted paths of what is in dir, hidden names left out: its directories and its files. */
static int list_directory(const char *dir, names *dirs, names *files, struct det_err *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return det_fail_errno(err, det_code_of_errno(errno), errno, "image folder: open %s", dir);
    errno = 0;
    for (struct dirent *e; (e = readdir(d)); errno = 0) {
        if (e->d_name[0] == '.')
            continue;
        char *path = det_asprintf("%s/%s", dir, e->d_name);
        names *to = is_dir(path) ? dirs : files;
        vec_push(to, path);
    }
    int why = errno; /* of readdir: names are missing */
    closedir(d);
    if (why)
        return det_fail_errno(err, DET_EIO, why, "image folder: read %s", dir);
    if (dirs->n)
        qsort(dirs->v, dirs->n, sizeof *dirs->v, by_bytes);
    if (files->n)
        qsort(files->v, files->n, sizeof *files->v, by_bytes);
    return 0;
}

static bool has_image_name(const char *path)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < DET_ARRAY_LEN(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Formats that torchvision would take: to leave them out in silence would change the records. */
static bool is_other_format(const char *path)
{
    static const char *const endings[] = {".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < DET_ARRAY_LEN(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static int take_files(struct folder *f, names *files, struct det_err *err)
{
    for (size_t i = 0; i < files->n; i++) {
        if (is_other_format(files->v[i]))
            return det_fail(err, DET_EINVAL, "%s: only JPEG and PNG files can be read",
                            files->v[i]);
        if (has_image_name(files->v[i]))
            vec_push(&f->files, (struct file){det_take(files->v[i]), (int64_t)f->classes.n - 1});
    }
    return 0;
}

/* All directories below dir, dir too. */
static int walk_directories(const char *dir, int depth, names *all, struct det_err *err)
{
    det_cleanup(names_finish) names dirs = {0}, files = {0};
    if (depth == DEPTH_MAX)
        return det_fail(err, DET_EINVAL, "image folder: %s is more than %d directories deep", dir,
                        DEPTH_MAX);
    vec_push(all, det_strdup(dir));
    int rc = list_directory(dir, &dirs, &files, err);
    for (size_t i = 0; rc == 0 && i < dirs.n; i++)
        rc = walk_directories(dirs.v[i], depth + 1, all, err);
    return rc;
}

/* Directories in the order of their paths, then files in the order of their names. */
static int take_class(struct folder *f, const char *dir, struct det_err *err)
{
    det_cleanup(names_finish) names all = {0};
    size_t before = f->files.n;
    vec_push(&f->classes, det_strdup(strrchr(dir, '/') + 1));
    int rc = walk_directories(dir, 0, &all, err);
    if (rc == 0)
        qsort(all.v, all.n, sizeof *all.v, by_bytes);
    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        det_cleanup(names_finish) names dirs = {0}, files = {0};
        if ((rc = list_directory(all.v[i], &dirs, &files, err)) == 0)
            rc = take_files(f, &files, err);
    }
    if (rc == 0 && f->files.n == before)
        return det_fail(err, DET_EINVAL, "image folder: class %s has no JPEG and no PNG file", dir);
    return rc;
}

static int take_classes(struct folder *f, const char *path, struct det_err *err)
{
    det_cleanup(names_finish) names dirs = {0}, files = {0};
    int rc = list_directory(path, &dirs, &files, err);
    for (size_t i = 0; rc == 0 && i < dirs.n; i++)
        rc = take_class(f, dirs.v[i], err);
    if (rc == 0 && dirs.n == 0)
        return det_fail(err, DET_EINVAL,
                        "image folder: %s has no subdirectories; each class is one", path);
    return rc;
}

/* ---- reading ---- */

static int read_file(const char *path, struct buf *to, struct det_err *err)
{
    struct stat st;
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", path);
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return det_fail(err, DET_ETOOBIG, "%s: not a file of at most %lld bytes", path,
                        (long long)FILE_MAX);
    buf_clear(to);
    buf_reserve(to, (size_t)st.st_size);
    for (ssize_t n; to->len < (size_t)st.st_size; to->len += (size_t)n) {
        n = read(fd, to->p + to->len, (size_t)st.st_size - to->len);
        if (n < 0)
            return det_fail_errno(err, DET_EIO, errno, "read %s", path);
        if (n == 0)
            break; /* it shrank: the decoder will say so */
    }
    return 0;
}

/* Where no step fixes a size, the first file's is that of all. */
static int check_size(const struct folder *f, const struct image_source *source,
                      struct det_err *err)
{
    int h = source->height, w = source->width;
    image_steps_follow(&f->steps, &h, &w);
    if (!f->first_height || (h == f->steps.height && w == f->steps.width))
        return 0;
    return det_fail(err, DET_EINVAL,
                    "%s: %d x %d pixels, but %s has %d x %d: the images differ in size, so a crop, "
                    "or a resize with .height and .width, must make them equal",
                    source->name, source->width, source->height, f->files.v[0].path, f->first_width,
                    f->first_height);
}

static int read_image(struct folder *f, const struct file *file, struct det_draws *draws,
                      struct image_work *w, float *out, struct det_err *err)
{
    struct image_source source;
    int rc = read_file(file->path, &w->file, err);
    if (rc == 0)
        rc = image_open(&source, file->path, w->file.p, w->file.len, f->pixels_max, err);
    if (rc == 0)
        rc = check_size(f, &source, err);
    return rc < 0 ? rc : image_steps_run(&f->steps, &source, draws, w, out, err);
}

static int get_random(void *self, int64_t index, struct det_draws *draws, void *const *out,
                      struct det_err *err)
{
    struct folder *f = self;
    if (f->files.n == 0)
        return det_fail(err, DET_ENOENT, "image folder: it is missing, its records are made up");
    struct image_work *w = image_pool_take(f->pool);
    int rc = read_image(f, &f->files.v[index], draws, w, out[0], err);
    image_pool_give(f->pool, w);
    memcpy(out[1], &f->files.v[index].label, sizeof f->files.v[index].label);
    return rc;
}

static void destroy_folder(void *self)
{
    struct folder *f = self;
    for (size_t i = 0; i < f->classes.n; i++)
        free(f->classes.v[i]);
    for (size_t i = 0; i < f->files.n; i++)
        free(f->files.v[i].path);
    vec_free(&f->classes);
    vec_free(&f->files);
    image_steps_finish(&f->steps);
    image_pool_destroy(f->pool);
    free(f);
}

static const struct det_dataset_type folder_type = {.get_random = get_random,
                                                    .destroy = destroy_folder};

static int settle_size(struct folder *f, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf bytes = BUF_INIT;
    struct image_source first;
    const char *path = f->files.v[0].path;
    int rc = read_file(path, &bytes, err);
    if (rc < 0 || (rc = image_open(&first, path, bytes.p, bytes.len, f->pixels_max, err)) < 0)
        return rc;
    f->first_height = f->steps.height = first.height;
    f->first_width = f->steps.width = first.width;
    image_steps_follow(&f->steps, &f->steps.height, &f->steps.width);
    return 0;
}

struct det_dataset *det_dataset_image_folder(const struct det_image_folder_options *o,
                                             struct det_err *err)
{
    struct folder *f = det_zalloc(sizeof *f);
    f->pool = image_pool_create();
    f->pixels_max = o->pixels_max > 0 ? o->pixels_max : IMAGE_PIXELS_MAX;
    int rc = image_steps_init(&f->steps, o->steps, 0, 0, err);
    if (rc == 0)
        rc = take_classes(f, o->path, err);
    if (rc == 0 && !f->steps.height)
        rc = settle_size(f, err);
    bool fake = rc == DET_ENOENT && data_fake_wanted() && f->classes.n == 0 && f->steps.height;
    if (fake && err)
        *err = (struct det_err){0};
    for (int i = 0; fake && i < FAKE_CLASSES; i++)
        vec_push(&f->classes, det_asprintf("class %d", i));
    if (rc < 0 && !fake) {
        destroy_folder(f);
        return NULL;
    }
    const struct det_field fields[] = {{"image", DET_F32, 3, {3, f->steps.height, f->steps.width}},
                                       {"label", DET_I64, 0, {0}}};
    int64_t records = fake ? DATASET_FAKE_RECORDS : (int64_t)f->files.n;
    return det_dataset_callback(&folder_type, f, records, fields, DET_ARRAY_LEN(fields), err);
}

const char *det_dataset_class_name(const struct det_dataset *ds, int64_t i)
{
    const struct det_dataset *base = ds ? dataset_base(ds) : NULL;
    if (!base || base->type != &folder_type)
        return NULL;
    const struct folder *f = base->self;
    return i >= 0 && (size_t)i < f->classes.n ? f->classes.v[i] : NULL;
}
