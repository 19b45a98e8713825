/* A dataset whose 8-bit image field goes through steps; the other fields pass. */
#include "dataset.h"
#include "image.h"
#include "image_pool.h"
#include "mem.h"
#include <string.h>

struct images {
    struct det_dataset *ds; /* referenced */
    int field;
    int64_t dims[3];
    struct image_steps steps;
    struct image_pool *pool;
};

static int read_and_run(struct images *s, struct image_work *w, int64_t index,
                        struct det_draws *draws, void *const *out, struct det_err *err)
{
    void *inner[DET_FIELDS_MAX];
    struct image_source source;
    const struct det_dataset *base = dataset_base(s->ds);
    buf_clear(&w->file);
    buf_reserve(&w->file, base->fields[s->field].record_bytes);
    memcpy(inner, out, sizeof *inner * base->n_fields);
    inner[s->field] = w->file.p;
    int rc = dataset_read(s->ds, index, (struct data_key){draws->seed, draws->epoch}, inner, err);
    if (rc < 0)
        return rc;
    image_open_planes(&source, "the image", (const uint8_t *)w->file.p, (int)s->dims[0],
                      (int)s->dims[1], (int)s->dims[2]);
    return image_steps_run(&s->steps, &source, draws, w, out[s->field], err);
}

static int get_random(void *self, int64_t index, struct det_draws *draws, void *const *out,
                      struct det_err *err)
{
    struct images *s = self;
    struct image_work *w = image_pool_take(s->pool);
    int rc = read_and_run(s, w, index, draws, out, err);
    image_pool_give(s->pool, w);
    return rc;
}

static void destroy_images(void *self)
{
    struct images *s = self;
    det_dataset_unref(s->ds);
    image_steps_finish(&s->steps);
    image_pool_destroy(s->pool);
    free(s);
}

static const struct det_dataset_type images_type = {.get_random = get_random,
                                                    .destroy = destroy_images};

/* Of a field u8 (1 or 3, height, width). */
static int find_field(struct images *s, const char *name, struct det_err *err)
{
    s->field = dataset_field(s->ds, name);
    if (s->field < 0)
        return det_fail(err, DET_EINVAL, "image steps: there is no field \"%s\"", name);
    const struct dataset_field *f = &dataset_base(s->ds)->fields[s->field];
    if (f->dtype != DET_U8 || f->ndim != 3 || (f->dims[0] != 1 && f->dims[0] != 3) ||
        f->dims[1] > IMAGE_SIDE_MAX || f->dims[2] > IMAGE_SIDE_MAX)
        return det_fail(err, DET_EINVAL,
                        "image steps: field \"%s\" is not uint8 (1 or 3, height, width)", name);
    memcpy(s->dims, f->dims, sizeof s->dims);
    return 0;
}

struct det_dataset *det_dataset_images(struct det_dataset *ds, const char *image,
                                       const struct det_image_step *steps, struct det_err *err)
{
    struct det_field fields[DET_FIELDS_MAX];
    if (!ds)
        return NULL;
    struct images *s = det_zalloc(sizeof *s);
    s->ds = ds;
    s->pool = image_pool_create();
    if (find_field(s, image, err) < 0 ||
        image_steps_init(&s->steps, steps, (int)s->dims[1], (int)s->dims[2], err) < 0) {
        destroy_images(s);
        return NULL;
    }
    size_t n = dataset_fields(ds, fields);
    fields[s->field].dtype = DET_F32;
    memcpy(fields[s->field].dims, (int64_t[]){3, s->steps.height, s->steps.width}, sizeof s->dims);
    return det_dataset_callback(&images_type, s, ds->records, fields, n, err);
}
