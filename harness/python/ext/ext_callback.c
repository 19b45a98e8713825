/* Callbacks, reducers and LR schedulers: each a table of Python callables behind the loop's. */
#include "ext.h"

#define HOOKS(X)                                                                                   \
    X(on_trial_startup)                                                                            \
    X(on_training_start)                                                                           \
    X(on_training_epoch_start)                                                                     \
    X(on_training_epoch_end)                                                                       \
    X(on_training_workload_end)                                                                    \
    X(on_validation_start)                                                                         \
    X(on_validation_epoch_start)                                                                   \
    X(on_validation_epoch_end)                                                                     \
    X(on_validation_end)                                                                           \
    X(on_checkpoint_write_end)                                                                     \
    X(on_checkpoint_upload_end)                                                                    \
    X(on_trial_shutdown)

struct ext_callback {
    struct ext_client *c;
#define X(hook) PyObject *hook;
    HOOKS(X)
#undef X
};

struct ext_reducer {
    struct ext_client *c;
    char *name;
    PyObject *reset, *per_slot, *cross_slot;
};

struct ext_lr {
    struct ext_client *c;
    PyObject *step;
};

/* ---- hooks of callbacks ---- */

/* Takes the GIL, makes the arguments, calls. */
#define HOOK(hook, params, ...)                                                                    \
    static int hook params                                                                         \
    {                                                                                              \
        struct ext_callback *cb = self;                                                            \
        PyGILState_STATE gil = PyGILState_Ensure();                                                \
        int rc = ext_call(cb->c, cb->hook, Py_BuildValue(__VA_ARGS__), NULL, err);                 \
        PyGILState_Release(gil);                                                                   \
        return rc;                                                                                 \
    }

HOOK(on_trial_startup, (void *self, int64_t first, const char *uuid, struct det_err *err), "(Lz)",
     (long long)first, uuid)
HOOK(on_training_start, (void *self, struct det_err *err), "()")
HOOK(on_training_epoch_start, (void *self, int64_t epoch, struct det_err *err), "(L)",
     (long long)epoch)
HOOK(on_training_epoch_end, (void *self, int64_t epoch, struct det_err *err), "(L)",
     (long long)epoch)
HOOK(on_training_workload_end,
     (void *self, const struct loop_metrics *avg, const struct loop_metrics *batches, size_t n,
      struct det_err *err),
     "(NN)", ext_metrics_dict(avg), ext_metrics_dicts(batches, n))
HOOK(on_validation_start, (void *self, struct det_err *err), "()")
HOOK(on_validation_epoch_start, (void *self, struct det_err *err), "()")
HOOK(on_validation_epoch_end,
     (void *self, const struct loop_metrics *outputs, size_t n, struct det_err *err), "(N)",
     ext_metrics_dicts(outputs, n))
HOOK(on_validation_end, (void *self, const struct loop_metrics *m, struct det_err *err), "(N)",
     ext_metrics_dict(m))
HOOK(on_checkpoint_write_end, (void *self, const char *dir, struct det_err *err), "(s)", dir)
HOOK(on_checkpoint_upload_end, (void *self, const char *uuid, struct det_err *err), "(s)", uuid)
HOOK(on_trial_shutdown, (void *self, struct det_err *err), "()")

/* ---- hooks of reducers ---- */

static int on_reset(void *self, struct det_err *err)
{
    struct ext_reducer *r = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(r->c, r->reset, PyTuple_New(0), NULL, err);
    PyGILState_Release(gil);
    return rc;
}

static int take_bytes(struct ext_client *c, PyObject *v, void **ret, size_t *ret_n,
                      struct det_err *err)
{
    char *p;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(v, &p, &n) < 0)
        return ext_failed(c, err);
    *ret = det_memdup(p, (size_t)n);
    *ret_n = (size_t)n;
    return 0;
}

static int on_per_slot(void *self, void **ret, size_t *ret_n, struct det_err *err)
{
    struct ext_reducer *r = self;
    PyObject *v = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(r->c, r->per_slot, PyTuple_New(0), &v, err);
    if (rc == 0)
        rc = take_bytes(r->c, v, ret, ret_n, err);
    Py_XDECREF(v);
    PyGILState_Release(gil);
    return rc;
}

static PyObject *bytes_list(const void *const *values, const size_t *bytes, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++)
        PyList_SetItem(list, (Py_ssize_t)i,
                       PyBytes_FromStringAndSize(values[i], (Py_ssize_t)bytes[i]));
    return list;
}

static int on_cross_slot(void *self, const void *const *values, const size_t *bytes, size_t n,
                         struct loop_metrics *out, struct det_err *err)
{
    struct ext_reducer *r = self;
    PyObject *dict = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(r->c, r->cross_slot, Py_BuildValue("(N)", bytes_list(values, bytes, n)),
                      &dict, err);
    if (rc == 0 && !PyDict_Check(dict))
        PyErr_SetString(PyExc_TypeError, "cross_slot_reduce() must give a dict");
    if (rc == 0 && (PyErr_Occurred() || ext_metrics_take(out, dict, r->c->plain) < 0))
        rc = ext_failed(r->c, err);
    Py_XDECREF(dict);
    PyGILState_Release(gil);
    return rc;
}

static int on_lr_step(void *self, struct det_err *err)
{
    struct ext_lr *lr = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(lr->c, lr->step, PyTuple_New(0), NULL, err);
    PyGILState_Release(gil);
    return rc;
}

/* ---- registering ---- */

/* d[key], new; NULL without an exception where it is None or absent. */
static PyObject *get_item(PyObject *d, const char *key)
{
    PyObject *v = PyDict_GetItemString(d, key); /* borrowed */
    return v == Py_None ? NULL : Py_XNewRef(v);
}

/* d[key], new; an exception where it is no callable. */
static PyObject *get_callable(PyObject *d, const char *key)
{
    PyObject *v = get_item(d, key);
    if (v && PyCallable_Check(v))
        return v;
    Py_XDECREF(v);
    PyErr_Format(PyExc_TypeError, "\"%s\" must be callable", key);
    return NULL;
}

static int64_t get_number(PyObject *d, const char *key, int64_t fallback)
{
    PyObject *v = get_item(d, key);
    int64_t n = v ? PyLong_AsLongLong(v) : fallback;
    Py_XDECREF(v);
    return n;
}

static void add_callback(struct ext_client *c, PyObject *hooks)
{
    struct ext_callback *cb = det_zalloc(sizeof *cb);
    struct loop_callback lc = {.self = cb};
    cb->c = c;
#define X(hook)                                                                                    \
    cb->hook = get_item(hooks, #hook);                                                             \
    lc.hook = cb->hook ? hook : NULL;
    HOOKS(X)
#undef X
    vec_push(&c->parts.callbacks, cb);
    vec_push(&c->parts.loop_callbacks, lc);
}

static void add_reducer(struct ext_client *c, PyObject *d)
{
    struct ext_reducer *r = det_zalloc(sizeof *r);
    PyObject *name = get_item(d, "name");
    r->c = c;
    r->name = name ? det_strdup(PyUnicode_AsUTF8AndSize(name, NULL)) : NULL;
    Py_XDECREF(name);
    r->reset = get_callable(d, "reset");
    r->per_slot = get_callable(d, "per_slot_reduce");
    r->cross_slot = get_callable(d, "cross_slot_reduce");
    vec_push(&c->parts.reducers, r);
    vec_push(&c->parts.loop_reducers,
             ((struct loop_reducer){.self = r,
                                    .name = r->name,
                                    .for_training = get_number(d, "for_training", 1),
                                    .for_validation = get_number(d, "for_validation", 1),
                                    .reset = on_reset,
                                    .per_slot_reduce = on_per_slot,
                                    .cross_slot_reduce = on_cross_slot}));
}

static void add_lr(struct ext_client *c, PyObject *d)
{
    struct ext_lr *lr = det_zalloc(sizeof *lr);
    lr->c = c;
    lr->step = get_callable(d, "step");
    vec_push(&c->parts.lrs, lr);
    vec_push(&c->parts.loop_lrs,
             ((struct loop_lr){.self = lr,
                               .mode = (enum loop_step_mode)get_number(d, "mode", LOOP_STEP_MANUAL),
                               .frequency = get_number(d, "frequency", 1),
                               .step = on_lr_step}));
}

typedef void add_fn(struct ext_client *c, PyObject *dict);

static int add_all(struct ext_client *c, PyObject *list, add_fn *add)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list) && !PyErr_Occurred(); i++) {
        PyObject *d = PyList_GetItem(list, i);
        if (PyDict_Check(d))
            add(c, d);
        else
            PyErr_SetString(PyExc_TypeError, "the list must hold dicts");
    }
    return PyErr_Occurred() ? -1 : 0;
}

int ext_parts_callbacks(struct ext_client *c, PyObject *list)
{
    return add_all(c, list, add_callback);
}

int ext_parts_reducers(struct ext_client *c, PyObject *list)
{
    return add_all(c, list, add_reducer);
}

int ext_parts_lrs(struct ext_client *c, PyObject *list)
{
    return add_all(c, list, add_lr);
}

static void callback_free(struct ext_callback *cb)
{
#define X(hook) Py_XDECREF(cb->hook);
    HOOKS(X)
#undef X
    free(cb);
}

void ext_parts_finish(struct ext_parts *p)
{
    for (size_t i = 0; i < p->callbacks.n; i++)
        callback_free(p->callbacks.v[i]);
    for (size_t i = 0; i < p->reducers.n; i++) {
        struct ext_reducer *r = p->reducers.v[i];
        Py_XDECREF(r->reset);
        Py_XDECREF(r->per_slot);
        Py_XDECREF(r->cross_slot);
        free(r->name);
        free(r);
    }
    for (size_t i = 0; i < p->lrs.n; i++) {
        Py_XDECREF(p->lrs.v[i]->step);
        free(p->lrs.v[i]);
    }
    vec_free(&p->callbacks);
    vec_free(&p->reducers);
    vec_free(&p->lrs);
    vec_free(&p->loop_callbacks);
    vec_free(&p->loop_reducers);
    vec_free(&p->loop_lrs);
}
