/*
 * What a configuration has that is its owner's alone: how to sign in to a registry of images
 * (environment.registry_auth). Pure. Who signs in, and where, is no secret.
 */
#ifndef PROTO_EXPCONF_HIDE_H
#define PROTO_EXPCONF_HIDE_H

#include "json.h"
#include <stdbool.h>
#include <stddef.h>

/* Stands for each secret; as a value of its own it is refused, so that nobody submits it. */
#define EXPCONF_HIDDEN "(hidden)"

/* Whether an answer's text may have any: a look at its bytes, for the many that have none. */
bool expconf_may_hide(const char *json, size_t len);
/* In place, of a configuration, whole or partial, of whatever types: its secrets, and what else in
 * it has the same value. */
void expconf_hide(json_t *config);
/* In place, in all that an answer of the API calls config or experimentConfig; an originalConfig
 * becomes the hidden config beside it, as JSON. For answers of which expconf_may_hide() is true. */
void expconf_hide_answer(json_t *answer);

#endif
