/*
 * The experiment's `profiling` (docs/contract/loop.md 11): while it is enabled, from begin_on_batch
 * to end_after_batch and five minutes at most, rank 0 sends how long the parts of the loop took,
 * and one rank of each host how busy the host was, to the master's profiler routes.
 *
 * Timings are the loop's spans (base/process/span.h) under the original's names; a host is sampled
 * ten times a second by a thread; what has gathered is posted every ten seconds, and at the end. A
 * trial that has measurements already (of an earlier run) makes no more.
 */
#ifndef LOOP_PROFILE_H
#define LOOP_PROFILE_H

#include "loop_impl.h"

/* After the master was asked for the trial; l->profile stays NULL where there is nothing to do. */
DET_MUST int loop_profile_open(struct loop *l, struct det_err *err);
/* Before batch b. */
DET_MUST int loop_profile_batch(struct loop *l, int64_t b, struct det_err *err);
/* The records of the batch that was just trained, and how long that took. */
void loop_profile_trained(struct loop *l, int64_t records, int64_t ns);
/* Sends what is left. */
void loop_profile_close(struct loop *l);

/* ---- What a host does: totals since it started, to be subtracted ---- */

struct host_load {
    double cpu_busy, cpu_all; /* in ticks */
    double free_bytes;
    double net_sent, net_received;            /* bytes of all interfaces but lo */
    double disk_ops, disk_read, disk_written; /* of whole disks; bytes */
};
/* From the text of /proc/stat, meminfo, net/dev and diskstats: outside bytes; what cannot be read
 * stays 0. */
void host_load_parse(const char *stat, const char *meminfo, const char *net, const char *disks,
                     struct host_load *ret);
void host_load_read(struct host_load *ret);

#endif
