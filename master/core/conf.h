/* What the core reads of an experiment's configuration. Private to master/core. */
#ifndef CORE_CONF_H
#define CORE_CONF_H

#include "model.h"

/* Borrows config. DET_EINVAL names the key that the core cannot work with. */
int conf_read(const json_t *config, struct conf *ret, struct det_err *err);

#endif
