/*
 * The space of hyperparameters: names to leaves {type: const|int|double|log|categorical, ...} and
 * nested groups (objects without `type`). A stored space is normalised: every constant is
 * {type: const, val: x}, every count is there (null if not given).
 * Sampling is a pure function of (space, generator): ascending byte order of names, groups in
 * place.
 */
#ifndef PROTO_HPARAM_H
#define PROTO_HPARAM_H

#include "det/err.h"
#include "json.h"
#include "mistakes.h"
#include "rng.h"
#include <stdbool.h>

#define HPARAM_GRID_MAX 100000 /* points of one grid */

/* Adds what is wrong with a raw space to m; `where` prefixes the paths ("hyperparameters"). */
void hparam_check(const json_t *space, const char *where, struct mistakes *m);
/* The normalised form of a raw space, new reference; what is ill-formed is copied as it is. */
json_t *hparam_normalise(const json_t *space);
/* Adds each searchable leaf without a count: a grid needs them all. Lists are looked into. */
void hparam_check_counts(const json_t *space, const char *where, struct mistakes *m);
/* Whether v is a leaf (an object with `type`); otherwise an object is a group. */
bool hparam_is_leaf(const json_t *v);

/* One point of a normalised space, new reference: name -> value, groups nested. */
json_t *hparam_sample(const json_t *space, struct mt19937 *r);
/* Point number index (< hparam_grid_points), the first axis slowest; new reference. Costs one walk
 * of space. */
json_t *hparam_grid_point(const json_t *space, size_t index);
/* How many points a grid has; stops counting above HPARAM_GRID_MAX. */
size_t hparam_grid_points(const json_t *space);

#endif
