/* Shared by auth*.c. */
#ifndef SHELL_AUTH_PRIVATE_H
#define SHELL_AUTH_PRIVATE_H

#include "det/err.h"
#include "slow.h"
#include <stdbool.h>

/* Does the password match the stored argon2id string? NULL or "" never does, in the same time. */
bool auth_verify_now(const char *password, bool is_hashed, const char *stored);

struct auth;
/* Work on passwords, one at a time. j is the caller's until done. DET_EUNAVAIL: too many wait. */
DET_MUST int auth_work(struct auth *a, struct slow_job *j, struct det_err *err);
struct guard *auth_guard(struct auth *a);
#endif
