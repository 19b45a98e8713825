#include "logtail.h"

void logtail_add(struct logtail *t, const char *stdtype, int rank, const struct logline *l)
{
    struct logtail_line *k = &t->v[t->lines++ % LOGTAIL_LINES];
    t->bytes += l->len;
    k->stdtype = stdtype;
    k->rank = l->rank >= 0 ? l->rank : rank;
    k->level = l->level;
    buf_clear(&k->text);
    buf_add(&k->text, l->text, l->len);
}

size_t logtail_count(const struct logtail *t)
{
    return t->lines < LOGTAIL_LINES ? (size_t)t->lines : LOGTAIL_LINES;
}

const struct logtail_line *logtail_at(const struct logtail *t, size_t i)
{
    return &t->v[(t->lines - logtail_count(t) + i) % LOGTAIL_LINES];
}

void logtail_finish(struct logtail *t)
{
    for (size_t i = 0; i < LOGTAIL_LINES; i++)
        buf_finish(&t->v[i].text);
    *t = (struct logtail){0};
}
