#include "api_snapshot.h"

#include "buf.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *next; /* what comes behind it; NULL: there is no line */
    int64_t trial, newest;
    const char *told;
    size_t len;
};

static void read_line(struct line *l, const char *at)
{
    char *end;
    *l = (struct line){0};
    if (!*at)
        return;
    l->trial = strtoll(at, &end, 10);
    l->newest = strtoll(end, &end, 10);
    l->told = *end ? end + 1 : end;
    l->len = strcspn(l->told, "\n");
    l->next = l->told + l->len + (l->told[l->len] == '\n');
}

static bool is_before(const struct line *l, const struct line *other)
{
    return l->next && (!other->next || l->trial < other->trial);
}

void api_put_snapshot(struct buf *out, const char *settled, const char *open, int64_t since)
{
    struct line s, o;
    read_line(&s, settled);
    read_line(&o, open);
    bool any = false;
    while (s.next || o.next) {
        struct line *l = is_before(&s, &o) ? &s : &o;
        if (l == &o && s.next && s.trial == o.trial)
            read_line(&s, s.next);
        if (l->newest > since) {
            if (any)
                buf_add_ch(out, ',');
            buf_add(out, l->told, l->len);
            any = true;
        }
        read_line(l, l->next);
    }
}
