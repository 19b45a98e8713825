/* CSV files of numbers as datasets. */
#include "data_file.h"
#include "dataset.h"
#include "dtype.h"
#include "mem.h"
#include <limits.h>
#include <math.h>
#include <string.h>

#define COLUMNS_MAX 100000

struct csv {
    const char *path;
    const struct det_csv_options *options;
    char separator;
    int columns;  /* of every line, from the first */
    int64_t line; /* 1-based, for messages */
    double *row;
    char *data[DET_FIELDS_MAX];
};

static int bad_line(const struct csv *c, struct det_err *err, const char *what)
{
    return det_fail(err, DET_ECORRUPT, "%s: line %lld: %s", c->path, (long long)c->line, what);
}

/* Next line that is not empty: [*p, *ret_end); false at the end. Counts lines. */
static bool next_line(struct csv *c, const char **p, const char *end, const char **ret_end)
{
    for (; *p < end; *p = *ret_end + 1) {
        const char *nl = memchr(*p, '\n', (size_t)(end - *p));
        *ret_end = nl ? nl : end;
        c->line++;
        if (*ret_end > *p && !(*ret_end == *p + 1 && **p == '\r'))
            return true;
    }
    return false;
}

static int count_columns(const struct csv *c, const char *p, const char *end, struct det_err *err)
{
    int n = 1;
    for (; p < end; p++)
        n += *p == c->separator;
    if (n > COLUMNS_MAX)
        return bad_line(c, err, "too many columns");
    return n;
}

/* A plain decimal ("-12.5") of at most 15 digits: both parts of digits / 10^k are exact, so the one
 * division rounds as strtod does, in a tenth of its time. NULL for any other spelling. */
static const char *parse_plain(const char *p, double *ret)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool minus = *p == '-';
    int digits = 0, decimals = 0;
    int64_t v = 0;
    for (p += minus; *p >= '0' && *p <= '9' && digits < 15; p++, digits++)
        v = v * 10 + (*p - '0');
    if (*p == '.' && digits > 0)
        for (p++; *p >= '0' && *p <= '9' && digits < 15; p++, digits++, decimals++)
            v = v * 10 + (*p - '0');
    if (digits == 0 || (*p >= '0' && *p <= '9') || *p == '.' || *p == 'e' || *p == 'E' ||
        *p == 'x' || *p == 'X')
        return NULL;
    double d = (double)v / power[decimals];
    *ret = minus ? -d : d;
    return p;
}

/* One number from *p; moves past the separator behind it. Neither way reads beyond the line: no
 * separator, newline or final NUL is part of a number. */
static int parse_number(const struct csv *c, const char **p, const char *end, double *ret,
                        struct det_err *err)
{
    const char *from = *p;
    while (from < end && *from == ' ')
        from++;
    if (from == end || *from == c->separator)
        return bad_line(c, err, "a number is missing");
    const char *stop = parse_plain(from, ret);
    if (!stop) {
        char *strtod_stop;
        *ret = strtod(from, &strtod_stop);
        stop = strtod_stop;
    }
    if (stop == from || stop > end || !isfinite(*ret))
        return bad_line(c, err, "not a finite number");
    while (stop < end && (*stop == ' ' || *stop == '\r'))
        stop++;
    if (stop < end && *stop != c->separator)
        return bad_line(c, err, "not a number");
    *p = stop < end ? stop + 1 : end;
    return 0;
}

static int parse_row(struct csv *c, const char *p, const char *end, struct det_err *err)
{
    if (count_columns(c, p, end, err) != c->columns)
        return bad_line(c, err, "another number of columns than in the first line");
    for (int i = 0; i < c->columns; i++) {
        int rc = parse_number(c, &p, end, &c->row[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int store_value(const struct csv *c, enum det_dtype dtype, double v, char *to,
                       struct det_err *err)
{
    det__store_f64(dtype, to, v);
    if (!det__is_float(dtype) && det__load_f64(dtype, to) != v)
        return bad_line(c, err, "a whole number within the field's range is needed");
    return 0;
}

static int store_row(struct csv *c, int64_t record, struct det_err *err)
{
    for (int f = 0; c->options->fields[f].name; f++) {
        const struct det_csv_field *field = &c->options->fields[f];
        double scale = field->scale == 0 ? 1 : field->scale;
        size_t size = det_dtype_size(field->dtype);
        char *to = c->data[f] + size * (size_t)field->columns * (size_t)record;
        for (int i = 0; i < field->columns; i++) {
            double v = c->row[field->first + i] * scale + field->offset;
            int rc = store_value(c, field->dtype, v, to + size * (size_t)i, err);
            if (rc < 0)
                return det_wrap(err, rc, "field \"%s\"", field->name);
        }
    }
    return 0;
}

/* The field as the dataset knows it; its dims must hold exactly its columns. */
static int check_field(const struct csv *c, const struct det_csv_field *f, struct det_field *ret,
                       struct det_err *err)
{
    int64_t n = 1;
    if (f->columns < 1 || f->first < 0 || f->first > c->columns - f->columns)
        return det_fail(err, DET_EINVAL,
                        "%s: field \"%s\" is columns %d to %d, but the file has %d", c->path,
                        f->name, f->first, f->first + f->columns - 1, c->columns);
    *ret = (struct det_field){.name = f->name, .dtype = f->dtype, .ndim = f->ndim};
    memcpy(ret->dims, f->dims, sizeof ret->dims);
    if (f->ndim == 0 && f->columns > 1) {
        ret->ndim = 1;
        ret->dims[0] = f->columns;
    }
    for (int i = 0; i < ret->ndim && i < DET_DIMS_MAX; i++)
        if (__builtin_mul_overflow(n, ret->dims[i], &n))
            n = -1;
    if (n != f->columns)
        return det_fail(err, DET_EINVAL, "%s: field \"%s\": its shape does not hold %d columns",
                        c->path, f->name, f->columns);
    return 0;
}

static int add_fields(struct csv *c, struct det_dataset *ds, struct det_err *err)
{
    struct det_field field;
    for (int f = 0; c->options->fields[f].name; f++) {
        if (f == DET_FIELDS_MAX)
            return det_fail(err, DET_EINVAL, "%s: at most %d fields", c->path, DET_FIELDS_MAX);
        int rc = check_field(c, &c->options->fields[f], &field, err);
        if (rc < 0 || (rc = dataset_add_zeros(ds, &field, &c->data[f], err)) < 0)
            return rc;
    }
    return 0;
}

static int read_rows(struct csv *c, struct det_dataset *ds, const char *p, const char *end,
                     struct det_err *err)
{
    const char *stop;
    int rc = add_fields(c, ds, err);
    for (int64_t i = 0; rc == 0 && next_line(c, &p, end, &stop); i++, p = stop + (stop < end)) {
        rc = parse_row(c, p, stop, err);
        if (rc == 0)
            rc = store_row(c, i, err);
    }
    return rc;
}

DET_DEFINE_CLEANUP(struct det_dataset *, det_dataset_unref)

static struct det_dataset *parse(struct csv *c, const char *p, const char *end, struct det_err *err)
{
    const char *stop;
    if (c->options->header && next_line(c, &p, end, &stop))
        p = stop + (stop < end);
    int64_t first_line = c->line, records = 0;
    for (const char *q = p; next_line(c, &q, end, &stop); q = stop + (stop < end), records++)
        if (records == 0 && (c->columns = count_columns(c, q, stop, err)) < 0)
            return NULL;
    c->line = first_line;
    if (records == 0) {
        det_fail(err, DET_EINVAL, "%s: no records", c->path);
        return NULL;
    }
    det_cleanup(freep) double *row = det_alloc(sizeof *row * (size_t)c->columns);
    c->row = row;
    det_cleanup(det_dataset_unrefp) struct det_dataset *ds = det_dataset_create(records, err);
    return read_rows(c, ds, p, end, err) < 0 ? NULL : det_take(ds);
}

/* The fields alone. */
static struct det_dataset *make_fake(struct csv *c, struct det_err *err)
{
    c->columns = INT_MAX;
    if (err)
        *err = (struct det_err){0};
    det_cleanup(det_dataset_unrefp) struct det_dataset *ds =
        det_dataset_create(DATASET_FAKE_RECORDS, err);
    return add_fields(c, ds, err) < 0 ? NULL : det_take(ds);
}

struct det_dataset *det_dataset_csv(const char *path, const struct det_csv_options *options,
                                    struct det_err *err)
{
    struct csv c = {.path = path,
                    .options = options,
                    .separator = options->separator ? options->separator : ','};
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    int rc = data_file_read(path, &text, err);
    if (rc == DET_ENOENT && data_fake_wanted())
        return make_fake(&c, err);
    if (rc < 0)
        return NULL;
    if (memchr(buf_str(&text), '\0', text.len)) {
        det_fail(err, DET_ECORRUPT, "%s: not a text file (it has a NUL byte)", path);
        return NULL;
    }
    return parse(&c, buf_str(&text), buf_str(&text) + text.len, err);
}
