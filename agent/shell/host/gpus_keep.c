#include "gpus.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define UUID_MIN 5 /* "GPU-" and "MIG-" alone are no name */

static void gpu_finish(struct gpu *g)
{
    free(g->name);
    free(g->uuid);
    free(g->whole_uuid);
}

void gpus_finish(struct gpus *g)
{
    for (size_t i = 0; i < g->v.n; i++)
        gpu_finish(&g->v.v[i]);
    vec_free(&g->v);
}

/* word: n bytes. */
static bool is_named(const struct gpu *g, const char *word, size_t n)
{
    char *end;
    if (n > 0 && isdigit((unsigned char)*word))
        return strtol(word, &end, 10) == g->number && end == word + n;
    return n >= UUID_MIN &&
           (strncmp(g->uuid, word, n) == 0 || strncmp(g->whole_uuid, word, n) == 0);
}

/* Whether it names any. */
static bool mark_named(const struct gpus *g, const char *word, size_t n, bool *kept)
{
    bool any = false;
    for (size_t i = 0; i < g->v.n; i++)
        if (is_named(&g->v.v[i], word, n))
            any = kept[i] = true;
    return any;
}

void gpus_keep(struct gpus *g, const char *visible)
{
    det_cleanup(freep) bool *kept = det_zalloc((g->v.n + 1) * sizeof *kept);
    size_t n = 0;
    if (!visible)
        return;
    for (const char *p = visible, *end;; p = end + 1) {
        p += strspn(p, " \t");
        end = p + strcspn(p, ",");
        if (!mark_named(g, p, strcspn(p, ", \t"), kept) || !*end)
            break;
    }
    for (size_t i = 0; i < g->v.n; i++)
        if (kept[i])
            g->v.v[n++] = g->v.v[i];
        else
            gpu_finish(&g->v.v[i]);
    g->v.n = n;
}
