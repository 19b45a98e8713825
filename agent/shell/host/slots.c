#include "slots.h"

#include "fsx.h"
#include "gpus.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slots_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

/* "Intel(R) Xeon(R) ..." of the first "model name" line. */
static char *cpu_brand(void)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (fsx_read_file(AT_FDCWD, "/proc/cpuinfo", (size_t)16 << 20, &b, NULL) < 0)
        return det_strdup("cpu");
    const char *p = strstr(buf_str(&b), "model name");
    p = p ? strchr(p, ':') : NULL;
    if (!p)
        return det_strdup("cpu");
    p += 1 + strspn(p + 1, " \t");
    size_t n = strcspn(p, "\n");
    return det_strndup(p, n < 200 ? n : 200);
}

static void add_cpus(struct slots *s, int n)
{
    det_cleanup(freep) char *brand = cpu_brand();
    for (int i = 0; i < n; i++) {
        struct link_slot slot = {i, LINK_CPU, det_strdup(brand), det_strdup(""), -1, -1};
        vec_push(&s->v, slot);
    }
}

/* What hides GPUs from this process hides them from its tasks: they were given to somebody else. */
static int add_gpus(struct slots *s, struct det_err *err)
{
    det_cleanup(gpus_finish) struct gpus g;
    int rc = gpus_find(&g, GPUS_FIND_MS, err);
    if (rc < 0)
        return rc;
    gpus_keep(&g, getenv("CUDA_VISIBLE_DEVICES"));
    for (size_t i = 0; i < g.v.n && g.v.v[i].id < LINK_SLOTS_MAX; i++) {
        const struct gpu *gpu = &g.v.v[i];
        struct link_slot slot = {
            gpu->id,     LINK_CUDA, det_strdup(gpu->name), det_strdup(gpu->uuid),
            gpu->island, gpu->numa};
        vec_push(&s->v, slot);
    }
    return 0;
}

int slots_find(const char *what, struct slots *ret, struct det_err *err)
{
    *ret = (struct slots){0};
    if (strcmp(what, "auto") == 0) {
        int rc = add_gpus(ret, err);
        if (rc == 0 && ret->v.n == 0)
            add_cpus(ret, 1);
        return rc;
    }
    char *end;
    long n = strtol(what, &end, 10);
    if (end == what || *end || n < 0 || n > LINK_SLOTS_MAX)
        return det_fail(err, DET_EINVAL, "--slots %s: 'auto', or a number from 0 to %d", what,
                        LINK_SLOTS_MAX);
    add_cpus(ret, (int)n);
    return 0;
}

void slots_finish(struct slots *s)
{
    for (size_t i = 0; i < s->v.n; i++) {
        free((char *)s->v.v[i].brand);
        free((char *)s->v.v[i].uuid);
    }
    vec_free(&s->v);
}
