/*
 * Named places where a test lets a program crash, fail or wait. Compiled in by -Dfailpoints=true
 * only; in every other build a FAILPOINT() is the constant 0 and leaves nothing behind.
 *
 *     FAILPOINT("driver.before_commit");                    a place to crash or to wait at
 *     if (FAILPOINT("spool.write") < 0)                     a place that can also fail
 *         return det_fail(err, DET_EIO, "write the spool: failpoint");
 *
 * Switched on by the environment: DET_FAILPOINTS="NAME=ACTION[@N],...", where ACTION is
 *     crash       kill -9 of the own process
 *     error       FAILPOINT() is DET_EIO
 *     delay:MS    waits so long first
 * and N counts the passes of this process: only the N-th acts; without @N every one does. A text
 * that is not of this form ends the program at its first failpoint with a message. Thread: any.
 */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef DET_FAILPOINTS_BUILT
int failpoint_pass(const char *name); /* 0 or DET_EIO */
#define FAILPOINT(name) failpoint_pass(name)
#else
static inline int failpoint_none(void)
{
    return 0;
}
#define FAILPOINT(name) failpoint_none()
#endif

#endif
