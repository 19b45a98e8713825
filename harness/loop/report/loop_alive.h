/*
 * The rank's side of the sign of life (proto/progress.h). The loop touches it by itself; a client
 * does so for what it does before loop_run(), such as compiling. Without DET_PROGRESS_FILE nothing
 * happens. One thread at a time.
 */
#ifndef LOOP_ALIVE_H
#define LOOP_ALIVE_H

#include "progress.h"
#include <stdbool.h>

/* Maps the file on first use. `batches`: training batches finished by this process. */
void loop_alive(enum progress_phase phase, uint64_t batches);
/* The model's code is there; took_ms: since the process began with it. */
void loop_alive_loaded(int64_t took_ms);
/* The same phase and batch as before: waiting for the master is not being stuck. */
void loop_alive_again(void);
/* Of any thread, since loop_alive() was first called: how long ago the last sign of life was, and
 * the longest time between two of which the second was no step of the start. */
int64_t loop_alive_silent_ms(void);
int64_t loop_alive_longest_ms(void);
/* True while this rank waits for rank 0: a thread shows once a second that it lives, for rank 0 may
 * have to wait for the master for hours. If rank 0 hangs, it is rank 0 that falls silent. */
void loop_alive_wait(bool waiting);
/* True while this rank waits for a disk, as a checkpoint is written or restored: a thread shows
 * once a second that it lives, as long as bytes move: from or to files, or onto the disk
 * (storage_synced_bytes()). A disk may be slow, but one that moves nothing any more is a rank that
 * hangs. */
void loop_alive_disk(bool waiting);

#endif
