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
/* In place, of a configuration, whole or partial, of whatever types. */
void expconf_hide(json_t *config);
/* Of YAML as it was sent: with its comments and its layout, where it then says what is hidden and
 * nothing else; else as JSON. malloc'd. */
char *expconf_hide_text(const char *yaml);
/* In place, in all that an answer of the API calls config, experimentConfig or originalConfig. */
void expconf_hide_answer(json_t *answer);

#endif
