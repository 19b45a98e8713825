/*
 * Looks at the GPUs of this host every GPUWATCH_EVERY_MS, by NVML, on a thread of its own: a call
 * may hang for seconds or for ever, and the loop goes on. A thread that has not come back for
 * GPUWATCH_SILENCE_MS is told as a driver that does not answer, of all slots.
 */
#ifndef GPUWATCH_H
#define GPUWATCH_H

#include "gpujudge.h"
#include "slots.h"

#include <uv.h>

#define GPUWATCH_EVERY_MS   2000
#define GPUWATCH_SILENCE_MS 30000

struct gpuwatch;
struct gpuwatch_handlers {
    bool (*has_task)(void *arg, int slot);
    /* At each look, also where nothing is new; what it points to lives for the call. */
    void (*on_slot)(void *arg, int slot, const struct gpu_verdict *v, const struct gpu_sight *s);
    void (*on_looked)(void *arg); /* after on_slot of all slots */
    void *arg;
};
/* NULL where there are no GPUs or no NVML: nothing is known of them then. Of each slot the first
 * verdict, "not looked at yet", is told before it returns. work_dir: of the agent, copied. */
struct gpuwatch *gpuwatch_create(uv_loop_t *loop, const struct slots *slots, const char *work_dir,
                                 const struct gpuwatch_handlers *h);
/* Looks at once: the thread may be waiting. NULL ok. */
void gpuwatch_kick(struct gpuwatch *w);
/* Its task has ended: UNSEEN, which is told before this returns, until a look that begins after it
 * says more. Looks often meanwhile. Slots that are not watched, NULL: nothing happens. */
void gpuwatch_settle(struct gpuwatch *w, int slot);
/* Nothing is told any more; a thread that hangs is left behind. NULL ok. */
void gpuwatch_close(struct gpuwatch *w);

#endif
