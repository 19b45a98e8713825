/*
 * Deletes the directories of tasks that are over (taskdir_sweep), on a thread, when the host is
 * quiet: SWEEPER_QUIET_MS after the last task ended, and at the latest SWEEPER_LATEST_MS after the
 * first that waits. Not at once, because ext4 looks at each inode deleted within the last minutes
 * before it makes a new one: deleting while many short tasks start took half of all the time they
 * had.
 */
#ifndef SWEEPER_H
#define SWEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define SWEEPER_QUIET_MS  1000
#define SWEEPER_LATEST_MS 10000

struct sweeper {
    int root_fd; /* borrowed */
    uv_timer_t timer;
    uv_work_t work;
    int64_t latest_ms; /* 0: nothing waits */
    bool is_sweeping, again;
};

void sweeper_init(struct sweeper *s, uv_loop_t *loop, int root_fd);
/* There is something to delete. */
void sweeper_kick(struct sweeper *s);
/* What is left is deleted at the next start. */
void sweeper_close(struct sweeper *s);

#endif
