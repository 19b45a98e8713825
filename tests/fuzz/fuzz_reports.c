/*
 * A batch of reports from any bytes. Each report is taken or refused with a reason; what is taken
 * has a group and an object of values, is kept as JSON, and the chunks that are made of all of them
 * are JSON with each of their names.
 */
#include "metric_body.h"
#include "metric_chunks.h"
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

static void check_chunks(const struct metric_point_set *v, size_t n)
{
    struct metric_chunks c;
    if (!metric_chunks_make(&c, v, n))
        return;
    require(c.n >= 1 && c.n <= METRIC_CHUNKS_MAX && c.v[c.n - 1].end == n);
    for (size_t i = 0; i < c.n; i++) {
        check_doc(&c.v[i].doc, c.names_n);
        check_doc(&c.v[i].values, c.names_n);
    }
    check_doc(&c.whole, c.names_n);
    metric_chunks_finish(&c);
}

static bool take(const json_t *request, struct metric_point_set *ret)
{
    struct det_err err = {0};
    struct metric_body b;
    struct http_who who = {.kind = WHO_ALLOC, .run_id = 1};
    const char *group = metric_body_group(request);
    int rc = metric_body_decode(wire_get(request, "metrics"), "metrics", group, &b, &err);
    if (rc == 0)
        rc = metric_body_owner(&who, 1, &b, &err);
    if (rc < 0) {
        require(*err.text && memchr(err.text, 0, sizeof err.text));
        return false;
    }
    require(*b.group && b.run_id == 1 && b.steps >= 0 && (!b.values || json_is_object(b.values)));
    struct buf stored = BUF_INIT;
    metric_body_store(&b, &stored);
    check_doc(&stored, 1);
    buf_finish(&stored);
    *ret = (struct metric_point_set){b.steps, 1700000000000000, b.values};
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metric_point_set v[METRIC_BATCH_MAX];
    size_t n = 0;
    JSON_OWN j = json_parse((const char *)data, size, NULL);
    const json_t *reports = wire_get(j, "reports");
    if (json_array_size(reports) > METRIC_BATCH_MAX)
        return 0;
    for (size_t i = 0; i < json_array_size(reports); i++)
        n += json_is_object(json_array_get(reports, i)) && take(json_array_get(reports, i), &v[n]);
    if (n > 0)
        check_chunks(v, n);
    return 0;
}
