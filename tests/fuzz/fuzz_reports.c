/*
 * A batch of reports from any bytes. What is read of it without a tree of values is what is read
 * with one. Each report is taken or refused with a reason; what is taken
 * has a group and an object of values, is kept as JSON, and the chunks that are made of all of them
 * are JSON with each of their names.
 */
#include "metric_body.h"
#include "wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_doc(const struct buf *b, size_t names)
{
    struct det_err err;
    JSON_OWN j = json_parse(buf_str(b), b->len, &err);
    require(json_is_object(j) && json_object_size(j) == names);
}

static void check_chunks(const struct metric_bundle *b)
{
    struct metric_point_set v[METRIC_BATCH_MAX];
    struct metric_chunks c;
    for (size_t i = 0; i < b->n; i++) {
        const struct metric_report *r = &b->v[i];
        v[i] = (struct metric_point_set){r->steps, 1700000000000000, b->texts.p + r->object,
                                         b->values.v + r->values, r->values_n};
    }
    if (!metric_chunks_make(&c, v, b->n))
        return;
    require(c.n >= 1 && c.n <= METRIC_CHUNKS_MAX && c.v[c.n - 1].end == b->n);
    for (size_t i = 0; i < c.n; i++) {
        check_doc(&c.v[i].doc, c.names_n);
        check_doc(&c.v[i].values, c.names_n);
    }
    check_doc(&c.whole, c.names_n);
    metric_chunks_finish(&c);
}

static int take(const json_t *request, struct metric_bundle *to)
{
    struct det_err err = {0};
    struct metric_body b;
    struct http_who who = {.kind = WHO_ALLOC, .run_id = 1};
    const char *group = metric_body_group(request);
    int rc = metric_body_decode(wire_get(request, "metrics"), "metrics", group, &b, &err);
    int64_t run_id = rc < 0 ? 0 : b.run_id;
    if (rc == 0)
        metric_body_add(&b, to);
    if (rc == 0)
        rc = metric_body_owner(&who, 1, b.trial_id, &run_id, &err);
    if (rc < 0) {
        require(*err.text && memchr(err.text, 0, sizeof err.text));
        return rc;
    }
    require(*b.group && run_id == 1 && b.steps >= 0 && (!b.values || json_is_object(b.values)));
    struct buf stored = BUF_INIT;
    metric_body_store(&b, &stored);
    check_doc(&stored, 1);
    require(strcmp(stored.p, to->texts.p + to->v[to->n - 1].metrics) == 0);
    buf_finish(&stored);
    return 0;
}

/* Returns whether each of them may be kept, whoever's it is. */
static bool take_all(const json_t *reports, struct metric_bundle *to)
{
    size_t n = json_array_size(reports);
    for (size_t i = 0; i < n; i++)
        if (json_is_object(json_array_get(reports, i)))
            (void)take(json_array_get(reports, i), to);
    return to->n == n && n > 0;
}

static const char *text_at(const struct metric_bundle *b, size_t at)
{
    return at == SIZE_MAX ? "" : b->texts.p + at;
}

static void check_values(const struct metric_bundle *a, const struct metric_report *x,
                         const struct metric_bundle *b, const struct metric_report *y)
{
    require(x->values_n == y->values_n);
    for (size_t i = 0; i < x->values_n; i++) {
        const struct metric_value *v = &a->values.v[x->values + i];
        const struct metric_value *w = &b->values.v[y->values + i];
        require(v->name == w->name && v->name_len == w->name_len && v->text == w->text &&
                v->text_len == w->text_len && v->number == w->number);
    }
}

/* What is read without a tree is what the tree gives. */
static void check_same(const struct metric_bundle *a, const struct metric_bundle *b)
{
    require(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct metric_report *x = &a->v[i], *y = &b->v[i];
        require(x->trial_id == y->trial_id && x->run_id == y->run_id && x->steps == y->steps);
        require(strcmp(text_at(a, x->group), text_at(b, y->group)) == 0);
        require(strcmp(text_at(a, x->metrics), text_at(b, y->metrics)) == 0);
        require(strcmp(text_at(a, x->batches), text_at(b, y->batches)) == 0);
        require(x->batches_len == y->batches_len &&
                x->object - x->metrics == y->object - y->metrics);
        check_values(a, x, b, y);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct metric_bundle plain, all;
    bool is_plain = metric_bundle_read(&plain, (const char *)data, size);
    JSON_OWN j = json_parse((const char *)data, size, NULL);
    const json_t *reports = wire_get(j, "reports");
    if (json_array_size(reports) <= METRIC_BATCH_MAX) {
        bool is_sound = take_all(reports, &all);
        require(is_sound || !is_plain);
        if (all.n > 0)
            check_chunks(&all);
    }
    if (is_plain)
        check_same(&plain, &all);
    metric_bundle_finish(&plain);
    metric_bundle_finish(&all);
    return 0;
}
