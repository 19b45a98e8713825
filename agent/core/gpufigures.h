/*
 * The GPUs of this host in figures, as the master is told now and then: gathered over the looks
 * since it was told last. Pure.
 */
#ifndef GPUFIGURES_H
#define GPUFIGURES_H

#include "gpujudge.h"

struct gpufigures;
struct gpufigures *gpufigures_create(void);
void gpufigures_destroy(struct gpufigures *f); /* NULL ok */
/* One look; of one that failed nothing is known. now_ms: monotonic. */
void gpufigures_add(struct gpufigures *f, int slot, const struct gpu_sight *s, bool has_task,
                    uint64_t now_ms);
/* An array of link_gpu_json() of all looked at since; NULL: none was. New reference. */
json_t *gpufigures_take(struct gpufigures *f);

#endif
