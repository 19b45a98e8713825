/* Shared by auth*.c. */
#ifndef SHELL_AUTH_PRIVATE_H
#define SHELL_AUTH_PRIVATE_H

#include "det/err.h"
#include <stdbool.h>
#include <uv.h>

/* Does the password match the stored argon2id string? NULL or "" never does, in the same time. */
bool auth_verify_now(const char *password, bool is_hashed, const char *stored);

/* Work on passwords, off the loop: what waits, in its order. */
struct auth_job {
    struct auth_job *next;
    struct auth_queue *queue;
    uv_thread_t thread;
    uv_async_t async;
    int status;
    void (*work)(struct auth_job *j);             /* in another thread */
    void (*done)(struct auth_job *j, int status); /* on the loop; status < 0: not done */
};
struct auth_queue {
    uv_loop_t *loop;
    struct auth_job *first;
    size_t waiting;
    bool busy;
};
/* j is the caller's until done. DET_EUNAVAIL: too many wait. */
int auth_work(struct auth_queue *q, struct auth_job *j, struct det_err *err);

struct auth;
struct auth_queue *auth_queue_of(struct auth *a);
struct guard *auth_guard(struct auth *a);
#endif
