#include "http_stats.h"

/* "trials" of "/api/v1/trials/{trialId}", "agent" of "/agent/v1/...". */
static const char *class_of(const char *pattern, int *ret_len)
{
    const char *p = pattern ? pattern : "/none";
    if (strncmp(p, "/api/v1/", 8) == 0)
        p += 7;
    *ret_len = (int)strcspn(p + 1, "/");
    return p + 1;
}

void http_stats_count(struct http_stats *s, const char *pattern, int status)
{
    int len;
    const char *class = class_of(pattern, &len);
    for (size_t i = 0; i < s->counts.n; i++) {
        struct http_count *c = &s->counts.v[i];
        if (c->status == status && c->class_len == len &&
            memcmp(c->class, class, (size_t)len) == 0) {
            c->n++;
            return;
        }
    }
    vec_push(&s->counts, (struct http_count){class, len, status, 1});
}

void http_stats_finish(struct http_stats *s)
{
    vec_free(&s->counts);
}
