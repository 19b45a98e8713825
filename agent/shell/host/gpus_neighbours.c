/* Who is whose neighbour: by NVLink, and by the node of the host. A MIG instance has its GPU's
 * node, and never NVLink. */
#include "gpus.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentlink.h"
#include "fsx.h"
#include "mem.h"
#include "nvml.h"

#define NUMBER_BYTES_MAX 32

static nvml_device device_of(const struct nvml *n, const struct gpu *g)
{
    nvml_device d = NULL;
    return n->handle((unsigned)g->number, &d) == NVML_OK ? d : NULL;
}

static bool is_whole(const struct gpu *g)
{
    return strcmp(g->uuid, g->whole_uuid) == 0;
}

static bool is_joined(const struct nvml *n, const struct gpu *a, const struct gpu *b)
{
    int status = -1;
    nvml_device x = device_of(n, a), y = device_of(n, b);
    return n->peers && is_whole(a) && is_whole(b) && x && y &&
           n->peers(x, y, NVML_PEERS_NVLINK, &status) == NVML_OK && status == NVML_PEERS_OK;
}

static int island_of(const struct gpu *g)
{
    return g->island >= 0 ? g->island : g->id;
}

/* All of both islands are one from now on. */
static void join_islands(struct gpus *g, int a, int b)
{
    for (size_t i = 0; i < g->v.n; i++)
        if (island_of(&g->v.v[i]) == a || island_of(&g->v.v[i]) == b)
            g->v.v[i].island = a < b ? a : b;
}

/* -1: the kernel does not know, as where there is one node only, or we do not see its /sys. */
static int read_numa(const struct nvml_pci *p)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    char path[96], *end;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", p->domain,
             p->bus, p->device);
    if (fsx_read_file(AT_FDCWD, path, NUMBER_BYTES_MAX, &b, NULL) < 0)
        return -1;
    long node = strtol(buf_str(&b), &end, 10);
    return end != buf_str(&b) && node >= 0 && node < LINK_NUMA_MAX ? (int)node : -1;
}

static int numa_of(const struct nvml *n, const struct gpu *g)
{
    struct nvml_pci p = {0};
    nvml_device d = n->pci ? device_of(n, g) : NULL;
    return d && n->pci(d, &p) == NVML_OK ? read_numa(&p) : -1;
}

void gpus_neighbours(struct gpus *g, const struct nvml *n)
{
    for (size_t i = 0; i < g->v.n; i++) {
        struct gpu *a = &g->v.v[i];
        a->numa = numa_of(n, a);
        for (size_t k = 0; k < i; k++)
            if (is_joined(n, &g->v.v[k], a))
                join_islands(g, island_of(&g->v.v[k]), island_of(a));
    }
}
