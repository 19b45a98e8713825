/* Whose a process is: of a task of this agent, by its environment or that of an ancestor. */
#ifndef PIDOWNER_H
#define PIDOWNER_H

#include <stdbool.h>
#include <stddef.h>

enum pidowner {
    PID_GONE,   /* there is no such process (any more) */
    PID_HIDDEN, /* nor could it be seen: this process is in a PID namespace of its own */
    PID_OURS,
    PID_FOREIGN,
};
/* work_dir: absolute, of the agent. name: its command's, "" where it cannot be seen. */
enum pidowner pidowner_of(int pid, const char *work_dir, char *name, size_t size);

#endif
