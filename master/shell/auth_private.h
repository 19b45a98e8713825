/* Shared by auth*.c. */
#ifndef SHELL_AUTH_PRIVATE_H
#define SHELL_AUTH_PRIVATE_H

#include <stdbool.h>

/* Does the password match the stored argon2id string? NULL or "" never does, in the same time. */
bool auth_verify_now(const char *password, bool is_hashed, const char *stored);

#endif
