/* The text format of Prometheus, version 0.0.4: families of samples, appended to a buffer. */
#ifndef SHELL_PROM_H
#define SHELL_PROM_H

#include "buf.h"
#include "hist.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Begins a family; type is "counter", "gauge" or "histogram". */
void prom_family(struct buf *out, const char *name, const char *type, const char *help);
/* One sample. labels: LABELS("state", "RUNNING", ...) or NULL; values are escaped here. */
#define PROM_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})
void prom_sample(struct buf *out, const char *name, const char *const *labels, double value);
/* A family with a single sample. */
void prom_single(struct buf *out, const char *name, const char *type, const char *help,
                 double value);
/* A family with one histogram, in seconds. */
void prom_hist(struct buf *out, const char *name, const char *help, const struct hist *h);

#endif
