/*
 * The sign of life of a rank: a small file that det-task makes, names in DET_PROGRESS_FILE, and
 * maps; the rank maps it too and touches it after each batch (train or validation), checkpoint and
 * start-up step. A rank whose `mono_ms` stays behind for longer than the stall timeout is stuck,
 * and `batches` and `phase` say where. Both sides use plain atomic loads and stores; there is one
 * writer.
 *
 * The file is exactly PROGRESS_BYTES long and starts as zeros: magic 0 = the rank has not begun. A
 * script over the Core API (determined/core/_alive.py) writes it from its first report on, and
 * sets magic to 0 again when it reports no more: then it is not watched.
 */
#ifndef PROTO_PROGRESS_H
#define PROTO_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

#define PROGRESS_ENV   "DET_PROGRESS_FILE"
#define PROGRESS_BYTES 64
#define PROGRESS_MAGIC UINT64_C(0x31474f5250544544) /* "DETPROG1" in little-endian order */

/* A rank that could not begin for want of what its host should have says so, in words, in this file
 * of DET_RUN_DIR: then it is a start that failed. */
#define PROGRESS_HOST_FAILED_FILE "host_failed"

/* Who catches this signal answers it with its stacks on standard error, as Python's faulthandler
 * writes them; whoever does not is never sent it. A real-time signal that no library uses. */
#define PROGRESS_STACKS_SIGNAL 63

enum progress_phase {
    PROGRESS_STARTING = 0, /* compiling, loading, connecting */
    PROGRESS_TRAINING,
    PROGRESS_VALIDATING,
    PROGRESS_CHECKPOINTING,
    PROGRESS_PHASE_COUNT
};

struct progress {
    _Atomic uint64_t magic;              /* PROGRESS_MAGIC once the rank has begun; written last */
    _Atomic uint64_t batches;            /* training batches that this process has finished */
    _Atomic int64_t mono_ms;             /* CLOCK_MONOTONIC of the last sign of life */
    _Atomic uint32_t phase;              /* enum progress_phase */
    _Atomic uint32_t loading_ms;         /* how long compiling or loading the model's code took */
    _Atomic int64_t loaded_mono_ms;      /* when that was done; 0: not yet */
    _Atomic int64_t first_batch_mono_ms; /* when the first batch of this process was done */
    uint32_t pad[4];                     /* zero */
};
_Static_assert(sizeof(struct progress) == PROGRESS_BYTES, "the layout is fixed");

/* "training"; never NULL, also for a value out of range. */
static inline const char *progress_phase_name(uint32_t phase)
{
    switch (phase) {
    case PROGRESS_TRAINING: return "training";
    case PROGRESS_VALIDATING: return "validating";
    case PROGRESS_CHECKPOINTING: return "checkpointing";
    default: return "starting";
    }
}

#endif
