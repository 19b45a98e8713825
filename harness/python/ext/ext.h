/*
 * determined._loop: libdet-loop for Python. The module is the loop's other client (the first is
 * harness/trial): it turns the hooks of `struct det_loop_trial_type` into calls of a Python object,
 * and Python's values into metrics. It holds no order of its own; determined/pytorch gives the
 * object, the loop gives the order.
 *
 * The GIL is released while the loop runs and taken for each hook, so a data loader's threads go on
 * while a rank waits for its peers.
 *
 * Errors: functions return a new reference or NULL with a Python exception; hooks return 0 or a
 * negative DET_E* and keep the exception in the client, which run() raises again whole, with its
 * traceback.
 */
#ifndef EXT_H
#define EXT_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loop.h"
#include "vec.h"

/* ---- ext_metrics.c ---- */

/* Fills *m from a dict of str to a number, None, a list of numbers, a text of JSON, or anything
 * that plain(value) makes one of these. -1 with an exception. */
int ext_metrics_take(struct loop_metrics *m, PyObject *dict, PyObject *plain);
/* A new dict of floats, lists, None and decoded JSON. */
PyObject *ext_metrics_dict(const struct loop_metrics *m);
PyObject *ext_metrics_dicts(const struct loop_metrics *v, size_t n);
/* A new Python value from JSON, and JSON (a new reference) from Python's; NULL with an
 * exception. */
PyObject *ext_from_json(const json_t *j);
json_t *ext_to_json(PyObject *value);

/* ---- ext_config.c ---- */

/* *c (LOOP_CONFIG_INIT before) from the dict that determined/pytorch/_trainer.py makes. -1 with an
 * exception. */
int ext_config_fill(struct det_loop_config *c, PyObject *dict);

/* ---- ext_callback.c ---- */

/* What a trial registers: Python callables and the loop's tables that lead to them. */
struct ext_parts {
    VEC(struct ext_callback *) callbacks;
    VEC(struct ext_reducer *) reducers;
    VEC(struct ext_lr *) lrs;
    VEC(struct loop_callback) loop_callbacks;
    VEC(struct loop_reducer) loop_reducers;
    VEC(struct loop_lr) loop_lrs;
};
struct ext_client;
/* From the client object's callbacks(), reducers() and lr_schedulers(). 0, or -1 with an
 * exception. */
int ext_parts_callbacks(struct ext_client *c, PyObject *list);
int ext_parts_reducers(struct ext_client *c, PyObject *list);
int ext_parts_lrs(struct ext_client *c, PyObject *list);
void ext_parts_finish(struct ext_parts *p);

/* ---- ext_trial.c ---- */

struct ext_client {
    PyObject *self;  /* the client object; borrowed while run() lasts */
    PyObject *loop;  /* a Loop, from create on */
    PyObject *plain; /* client.plain */
    PyObject *train_batch, *evaluate_batch;
    PyObject *train, *valid; /* the loaders */
    PyObject *train_next, *valid_next;
    PyObject *batch;                    /* the one that the loop holds */
    PyObject *tensorboard;              /* a str: the directory of TensorBoard's files */
    PyObject *type, *value, *traceback; /* the first exception of a hook */
    struct det_loop_trial_type table;
    struct ext_parts parts;
};

/* Calls fn with `args` (a tuple, taken; NULL is an exception in flight). 0, with the result in *ret
 * where ret is not NULL; else the exception is kept in c and *err says it in one line. */
DET_MUST int ext_call(struct ext_client *c, PyObject *fn, PyObject *args, PyObject **ret,
                      struct det_err *err);
/* Keeps the exception in flight; its code. */
DET_MUST int ext_failed(struct ext_client *c, struct det_err *err);

/* run(config, client) -> None, or the text of an InvalidHP. */
PyObject *ext_run(PyObject *module, PyObject *args);

/* ---- ext_experiment.c ---- */

/* experiment(path or None, overrides, entrypoint, point) -> (config, hparams) */
PyObject *ext_experiment(PyObject *module, PyObject *args);

/* ---- ext_store.c: checkpoints of the Core API ---- */

PyObject *ext_store_begin(PyObject *module, PyObject *args);
PyObject *ext_store_publish(PyObject *module, PyObject *args);
PyObject *ext_store_delete(PyObject *module, PyObject *args);
PyObject *ext_store_ready(PyObject *module, PyObject *args);
PyObject *ext_store_note(PyObject *module, PyObject *args);
PyObject *ext_store_hash(PyObject *module, PyObject *args);
PyObject *ext_store_verify(PyObject *module, PyObject *args);

/* ---- ext_loop.c, ext_comm.c, ext_events.c: the types Loop, Comm and EventWriter ---- */

PyObject *ext_loop_type(void);
PyObject *ext_loop_new(struct loop *l);
/* The run has ended: what is left of the object refuses. */
void ext_loop_close(PyObject *loop);
PyObject *ext_comm_type(void);
PyObject *ext_events_type(void);

/* RuntimeError, or what fits err->code better. Returns NULL. */
PyObject *ext_raise(const struct det_err *err);

#endif
