#include "bundle.h"

#include "mem.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static bool is_small_report(const struct spool_record *r)
{
    return report_kind(r->method, r->path) == REPORT_METRICS && *r->body &&
           strlen(r->body) <= BUNDLE_ONE_MAX;
}

static void add_report(struct bundle *b, const struct spool_record *r)
{
    buf_add_str(&b->body, b->n ? "," : "{\"reports\":[");
    buf_add_str(&b->body, r->body);
    b->record[b->n++] = b->taken;
}

static void keep_progress(struct bundle *b, const struct spool_record *r)
{
    free(b->progress);
    free(b->progress_path);
    b->progress = det_strdup(r->body);
    b->progress_path = det_strdup(r->path);
}

static bool has_room(const struct bundle *b, const struct spool_record *r)
{
    return b->n < BUNDLE_REPORTS_MAX && b->body.len + strlen(r->body) < BUNDLE_BYTES_MAX;
}

/* Whether it goes along. */
static bool add_record(struct bundle *b, const struct spool_record *r, const char *state)
{
    enum report_kind kind = report_kind(r->method, r->path);
    if (kind == REPORT_STATE)
        return state && strcmp(r->body, state) == 0;
    if (kind == REPORT_PROGRESS)
        keep_progress(b, r);
    else if (is_small_report(r) && !strncmp(r->path, b->path, strlen(r->path)) && has_room(b, r))
        add_report(b, r);
    else
        return false;
    return true;
}

bool bundle_gather(struct bundle *b, struct spool *s, const struct spool_record *first,
                   const char *state)
{
    struct spool_record r;
    *b = (struct bundle){0};
    if (!is_small_report(first))
        return false;
    b->path = det_asprintf("%s/batch", first->path);
    b->seq = det_strdup(first->seq);
    add_report(b, first);
    for (b->taken = 1; spool_more(s, &r, NULL) == 0 && add_record(b, &r, state); b->taken++)
        spool_take(s);
    buf_add_str(&b->body, "]}");
    return b->n > 1;
}

void bundle_finish(struct bundle *b)
{
    free(b->path);
    free(b->seq);
    free(b->progress);
    free(b->progress_path);
    buf_finish(&b->body);
}
