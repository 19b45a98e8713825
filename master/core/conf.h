/* What the core reads of an experiment's configuration. Private to master/core. */
#ifndef CORE_CONF_H
#define CORE_CONF_H

#include "model.h"

/* Borrows config. DET_EINVAL names the key that the core cannot work with. */
DET_MUST int conf_read(const json_t *config, struct conf *ret, struct det_err *err);
/* What the core goes on reading of config, and all that a conf borrows, sharing its values; a new
 * reference. As a tree the whole takes eight times the memory of its text. */
json_t *conf_trim(const json_t *config);
/* A cap below one trial's slots would let none ever start. */
DET_MUST int conf_check_max_slots(const struct conf *f, int64_t max_slots, struct det_err *err);

#endif
