/*
 * Tensors of a device on their way to host memory while training goes on: their bytes are copied on
 * the device, in the order of the engine's work, which takes a hundredth of the time that the way
 * to the host takes; from there they are fetched on a stream of their own, by whatever thread wants
 * them.
 *
 * The copy gives way: an engine whose device has no memory left has it fetched at once, and its
 * memory back.
 */
#ifndef DEVICE_READS_H
#define DEVICE_READS_H

#include "engine.h"

struct device_reads;

/* Of an engine with a device; at most one at a time. It ends before the engine does. */
struct device_reads *device_reads_create(struct det_engine *e);
/* Whether t is the engine's, on its device, in plain order. */
bool device_reads_takes(const struct device_reads *r, const struct det_tensor *t);
/* Notes such a tensor, whose bytes are to get to `host`; both stay until device_reads_begin(). */
void device_reads_add(struct device_reads *r, const struct det_tensor *t, void *host);
/* From now on the tensors may change. Reports what failed on the device before. Where the device
 * has no memory for a copy, all is read before it returns. */
DET_MUST int device_reads_begin(struct device_reads *r, struct det_err *err);
/* Returns when all is in host memory, or failed; in any thread, and again. */
DET_MUST int device_reads_fetch(struct device_reads *r, struct det_err *err);
/* What was not fetched is forgotten. In the engine's thread; NULL is allowed. */
void device_reads_destroy(struct device_reads *r);

/* Returns when what an engine's reads were to fetch is in host memory. */
DET_MUST int device_reads_await(struct det_engine *e, struct det_err *err);
/* Has what an engine's reads hold of the device's memory fetched and given back: whether they held
 * any. */
bool device_reads_yield(struct det_engine *e);

#endif
