#include "shared_buf.h"

#include "mem.h"

struct shared_buf *shared_buf_create(void)
{
    struct shared_buf *s = det_zalloc(sizeof *s);
    s->owners = 1;
    return s;
}

struct shared_buf *shared_buf_ref(struct shared_buf *s)
{
    s->owners++;
    return s;
}

void shared_buf_unref(struct shared_buf *s)
{
    if (!s || --s->owners > 0)
        return;
    buf_finish(&s->b);
    free(s);
}
