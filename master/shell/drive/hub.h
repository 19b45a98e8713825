/* Wakes the followers of a task's log the moment new lines were committed: no polling. */
#ifndef SHELL_HUB_H
#define SHELL_HUB_H

struct hub;
struct hub_watch;
struct hub *hub_create(void);
void hub_destroy(struct hub *h); /* watches must be gone */
/* fn(arg) runs after each commit of lines of this task (task_id is copied); it may unwatch itself.
 */
struct hub_watch *hub_watch(struct hub *h, const char *task_id, void (*fn)(void *arg), void *arg);
void hub_unwatch(struct hub_watch *w); /* NULL ok */
void hub_notify(struct hub *h, const char *task_id);

#endif
