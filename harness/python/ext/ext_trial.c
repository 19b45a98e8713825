/* The hooks of a trial as calls of a Python object, and run(). */
#include "ext.h"

#include "loop_env.h"

/* ---- calling ---- */

#define KEPT "the client keeps the exception, and the run ends with it" /* for det_ignore() */

/* client.method(args), with the GIL held. */
static int call_method(struct ext_client *c, const char *name, PyObject *args, PyObject **ret,
                       struct det_err *err)
{
    PyObject *fn = PyObject_GetAttrString(c->self, name);
    if (!fn) {
        Py_XDECREF(args);
        return ext_failed(c, err);
    }
    int rc = ext_call(c, fn, args, ret, err);
    Py_DECREF(fn);
    return rc;
}

/* The same from a hook, which does not hold it. */
#define HOOK_CALL(c, name, ret, err, ...)                                                          \
    __extension__({                                                                                \
        PyGILState_STATE gil_ = PyGILState_Ensure();                                               \
        int rc_ = call_method(c, name, Py_BuildValue(__VA_ARGS__), ret, err);                      \
        PyGILState_Release(gil_);                                                                  \
        rc_;                                                                                       \
    })

/* ---- life ---- */

static int on_create(void *self, struct loop *loop, struct det_err *err)
{
    struct ext_client *c = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    c->loop = ext_loop_new(loop);
    int rc = c->loop ? call_method(c, "create", Py_BuildValue("(O)", c->loop), NULL, err)
                     : ext_failed(c, err);
    PyGILState_Release(gil);
    return rc;
}

/* The run ends here, and with it what the user's threads may ask of it. */
static void on_destroy(void *self)
{
    struct ext_client *c = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    ext_loop_close(c->loop);
    PyGILState_Release(gil);
}

typedef int take_fn(struct ext_client *c, PyObject *list);

static int take_parts(struct ext_client *c, const char *name, take_fn *take, struct det_err *err)
{
    PyObject *list = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = call_method(c, name, PyTuple_New(0), &list, err);
    if (rc == 0 && (!PyList_Check(list) || take(c, list) < 0)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s() must give a list", name);
        rc = ext_failed(c, err);
    }
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return rc;
}

static int on_callbacks(void *self, const struct loop_callback **ret, size_t *ret_n,
                        struct det_err *err)
{
    struct ext_client *c = self;
    int rc = take_parts(c, "callbacks", ext_parts_callbacks, err);
    *ret = c->parts.loop_callbacks.v;
    *ret_n = c->parts.loop_callbacks.n;
    return rc;
}

static int on_reducers(void *self, const struct loop_reducer **ret, size_t *ret_n,
                       struct det_err *err)
{
    struct ext_client *c = self;
    int rc = take_parts(c, "reducers", ext_parts_reducers, err);
    *ret = c->parts.loop_reducers.v;
    *ret_n = c->parts.loop_reducers.n;
    return rc;
}

static int on_lrs(void *self, const struct loop_lr **ret, size_t *ret_n, struct det_err *err)
{
    struct ext_client *c = self;
    int rc = take_parts(c, "lr_schedulers", ext_parts_lrs, err);
    *ret = c->parts.loop_lrs.v;
    *ret_n = c->parts.loop_lrs.n;
    return rc;
}

/* ---- data ---- */

static int on_start(void *self, const struct sampler_plan *p, struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *loader = p->repeat ? c->train : c->valid;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *fn = PyObject_GetAttrString(loader, "start");
    int rc = fn ? ext_call(c, fn,
                           Py_BuildValue("(OiiL)", p->repeat ? Py_True : Py_False, p->size, p->rank,
                                         (long long)p->skip),
                           NULL, err)
                : ext_failed(c, err);
    Py_XDECREF(fn);
    PyGILState_Release(gil);
    return rc;
}

/* The batch lives until the next one is asked for. */
static int next_batch(struct ext_client *c, PyObject *next, const void **ret, struct det_err *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *batch = PyObject_CallNoArgs(next);
    int rc = 0;
    Py_CLEAR(c->batch);
    if (!batch && PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Clear();
        rc = DET_ENOENT;
    } else if (!batch) {
        rc = ext_failed(c, err);
    }
    c->batch = batch;
    *ret = batch;
    PyGILState_Release(gil);
    return rc;
}

static int on_train_next(void *self, struct sampler_pos pos, const void **ret, struct det_err *err)
{
    struct ext_client *c = self;
    return next_batch(c, c->train_next, ret, err);
}

static int on_valid_next(void *self, struct sampler_pos pos, const void **ret, struct det_err *err)
{
    struct ext_client *c = self;
    return next_batch(c, c->valid_next, ret, err);
}

static const struct loop_loader_type train_loader = {.start = on_start, .next = on_train_next};
static const struct loop_loader_type valid_loader = {.start = on_start, .next = on_valid_next};

static int64_t batches_of(PyObject *loader)
{
    PyObject *n = PyObject_GetAttrString(loader, "batches");
    int64_t v = n && n != Py_None ? PyLong_AsLongLong(n) : INT64_MAX;
    Py_XDECREF(n);
    return v;
}

static int build_loader(struct ext_client *c, bool training, struct loop_loader *ret,
                        struct det_err *err)
{
    PyObject **loader = training ? &c->train : &c->valid;
    PyObject **next = training ? &c->train_next : &c->valid_next;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = call_method(c, training ? "build_training_loader" : "build_validation_loader",
                         PyTuple_New(0), loader, err);
    if (rc == 0) {
        *next = PyObject_GetAttrString(*loader, "next");
        *ret = (struct loop_loader){.type = training ? &train_loader : &valid_loader,
                                    .self = c,
                                    .batches = batches_of(*loader)};
        if (PyErr_Occurred())
            rc = ext_failed(c, err);
    }
    PyGILState_Release(gil);
    return rc;
}

static int on_build_training(void *self, struct loop_loader *ret, struct det_err *err)
{
    return build_loader(self, true, ret, err);
}

static int on_build_validation(void *self, struct loop_loader *ret, struct det_err *err)
{
    return build_loader(self, false, ret, err);
}

static int64_t on_batch_records(void *self, const void *batch)
{
    struct ext_client *c = self;
    PyObject *n = NULL;
    struct det_err err = {0};
    if (HOOK_CALL(c, "batch_records", &n, &err, "(O)", (PyObject *)batch) < 0)
        return 0; /* the exception is kept: evaluate_batch fails with it */
    PyGILState_STATE gil = PyGILState_Ensure();
    int64_t v = PyLong_AsLongLong(n);
    if (PyErr_Occurred())
        det_ignore(ext_failed(c, &err), KEPT);
    Py_DECREF(n);
    PyGILState_Release(gil);
    return v;
}

/* ---- steps ---- */

static int take_metrics(struct ext_client *c, PyObject *dict, struct loop_metrics *m,
                        struct det_err *err)
{
    if (PyDict_Check(dict) && ext_metrics_take(m, dict, c->plain) == 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "metrics must be a dict, not %R", (PyObject *)Py_TYPE(dict));
    return ext_failed(c, err);
}

/* The end of a hook that measures: what it was told, and the GIL. Takes `dict`. */
static int end_with_metrics(struct ext_client *c, PyGILState_STATE gil, int rc, PyObject *dict,
                            struct loop_metrics *m, struct det_err *err)
{
    if (rc == 0)
        rc = take_metrics(c, dict, m, err);
    Py_XDECREF(dict);
    PyGILState_Release(gil);
    return rc;
}

/* get_batch_length() and reports have no way to say that they failed: the next step does. */
static bool is_spoilt(const struct ext_client *c, struct det_err *err)
{
    if (c->type)
        det_fail(err, DET_EINVAL, "an exception before this step");
    return c->type;
}

static int on_train_batch(void *self, const void *batch, int64_t epoch, int64_t b,
                          struct loop_metrics *m, struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *dict = NULL;
    if (is_spoilt(c, err))
        return err->code;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(c, c->train_batch,
                      Py_BuildValue("(OLL)", (PyObject *)batch, (long long)epoch, (long long)b),
                      &dict, err);
    return end_with_metrics(c, gil, rc, dict, m, err);
}

static int on_evaluate_batch(void *self, const void *batch, int64_t b, struct loop_metrics *m,
                             struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *dict = NULL;
    if (is_spoilt(c, err))
        return err->code;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = ext_call(c, c->evaluate_batch, Py_BuildValue("(OL)", (PyObject *)batch, (long long)b),
                      &dict, err);
    return end_with_metrics(c, gil, rc, dict, m, err);
}

static int on_evaluate_all(void *self, struct loop_metrics *m, struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *dict = NULL;
    if (is_spoilt(c, err))
        return err->code;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = call_method(c, "evaluate_full_dataset", PyTuple_New(0), &dict, err);
    return end_with_metrics(c, gil, rc, dict, m, err);
}

static int on_reduction(void *self, const char *metric, struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *n = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = call_method(c, "reduction", Py_BuildValue("(s)", metric), &n, err);
    if (rc == 0)
        rc = (int)PyLong_AsLong(n);
    if (PyErr_Occurred())
        rc = ext_failed(c, err);
    Py_XDECREF(n);
    PyGILState_Release(gil);
    return rc;
}

static int on_set_training(void *self, bool training, struct det_err *err)
{
    return HOOK_CALL(self, "set_training", NULL, err, "(O)", training ? Py_True : Py_False);
}

static int on_scaler_update(void *self, struct det_err *err)
{
    return HOOK_CALL(self, "scaler_update", NULL, err, "()");
}

/* ---- state ---- */

/* Python has its own way to the other ranks. */
static int on_before_save(void *self, struct comm *comm, struct det_err *err)
{
    return HOOK_CALL(self, "before_save", NULL, err, "()");
}

static int on_save(void *self, const char *dir, struct det_err *err)
{
    return HOOK_CALL(self, "save", NULL, err, "(s)", dir);
}

static int on_load(void *self, const char *dir, struct det_err *err)
{
    return HOOK_CALL(self, "load", NULL, err, "(s)", dir);
}

static int on_save_state(void *self, const char *dir, const struct loop_state *s,
                         struct det_err *err)
{
    return HOOK_CALL(self, "save_state", NULL, err, "(s{s:L,s:L,s:L,s:L,s:L,s:L})", dir, "trial_id",
                     (long long)s->trial_id, "last_ckpt", (long long)s->last_ckpt, "step_id",
                     (long long)s->step_id, "last_val", (long long)s->last_val, "batches_trained",
                     (long long)s->batches_trained, "epochs_trained", (long long)s->epochs_trained);
}

static int take_state(PyObject *t, struct loop_state *ret)
{
    long long v[6];
    if (!PyTuple_Check(t)) {
        PyErr_SetString(PyExc_TypeError, "load_state() must give a tuple of six numbers, or None");
        return -1;
    }
    if (!PyArg_ParseTuple(t, "LLLLLL", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]))
        return -1;
    *ret = (struct loop_state){v[0], v[1], v[2], v[3], v[4], v[5]};
    return 0;
}

/* A tuple of the six numbers in the order of struct loop_state, or None: there is no such file. */
static int on_load_state(void *self, const char *dir, struct loop_state *ret, struct det_err *err)
{
    struct ext_client *c = self;
    PyObject *t = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = call_method(c, "load_state", Py_BuildValue("(s)", dir), &t, err);
    if (rc == 0 && t == Py_None)
        rc = DET_ENOENT;
    else if (rc == 0 && take_state(t, ret) < 0)
        rc = ext_failed(c, err);
    Py_XDECREF(t);
    PyGILState_Release(gil);
    return rc;
}

/* ---- TensorBoard: an exception ends the run at its next step ---- */

static bool wants_metrics(struct ext_client *c)
{
    PyObject *r = NULL;
    struct det_err err = {0};
    det_ignore(call_method(c, "wants_metrics", PyTuple_New(0), &r, &err), KEPT);
    Py_XDECREF(r);
    return r == Py_True;
}

/* write_metrics(steps, metrics, those of each batch or None) */
static void write_metrics(struct ext_client *c, int64_t steps, const struct loop_metrics *metrics,
                          const struct loop_metrics *rows, size_t n)
{
    struct det_err err = {0};
    PyObject *avg = ext_metrics_dict(metrics);
    PyObject *list = rows ? ext_metrics_dicts(rows, n) : Py_NewRef(Py_None);
    PyObject *args = Py_BuildValue("(LNN)", (long long)steps, avg, list);
    det_ignore(call_method(c, "write_metrics", args, NULL, &err), KEPT);
}

static void on_write_metrics(void *self, int64_t steps, const struct loop_metrics *metrics,
                             const struct loop_metrics *rows, size_t n)
{
    struct ext_client *c = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (wants_metrics(c))
        write_metrics(c, steps, metrics, rows, n);
    PyGILState_Release(gil);
}

static const char *on_tensorboard_dir(void *self)
{
    struct ext_client *c = self;
    struct det_err err = {0};
    PyObject *dir = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    det_ignore(call_method(c, "tensorboard_dir", PyTuple_New(0), &dir, &err), KEPT);
    const char *s = dir && dir != Py_None ? PyUnicode_AsUTF8AndSize(dir, NULL) : NULL;
    if (PyErr_Occurred())
        det_ignore(ext_failed(c, &err), KEPT);
    Py_XDECREF(c->tensorboard);
    c->tensorboard = dir; /* the text lives in it */
    PyGILState_Release(gil);
    return s;
}

static const struct det_loop_trial_type hooks = {
    .create = on_create,
    .destroy = on_destroy,
    .callbacks = on_callbacks,
    .reducers = on_reducers,
    .lr_schedulers = on_lrs,
    .build_training_loader = on_build_training,
    .build_validation_loader = on_build_validation,
    .batch_records = on_batch_records,
    .train_batch = on_train_batch,
    .evaluate_batch = on_evaluate_batch,
    .evaluate_all = on_evaluate_all,
    .reduction = on_reduction,
    .set_training = on_set_training,
    .scaler_update = on_scaler_update,
    .before_save = on_before_save,
    .save = on_save,
    .load = on_load,
    .save_state = on_save_state,
    .load_state = on_load_state,
    .write_metrics = on_write_metrics,
    .tensorboard_dir = on_tensorboard_dir,
};

/* ---- what a local run tells the person in front of it: client.reported(what, steps, value) */

/* Takes value; an exception ends the run at its next step. */
static void tell_reported(struct ext_client *c, const char *what, int64_t steps, PyObject *value)
{
    struct det_err err = {0};
    PyObject *args = Py_BuildValue("(sLN)", what, (long long)steps, value);
    det_ignore(call_method(c, "reported", args, NULL, &err), KEPT);
}

static void on_training_report(void *self, int64_t steps, const struct loop_metrics *avg)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    tell_reported(self, "training", steps, ext_metrics_dict(avg));
    PyGILState_Release(gil);
}

static void on_validation_report(void *self, int64_t steps, const struct loop_metrics *metrics)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    tell_reported(self, "validation", steps, ext_metrics_dict(metrics));
    PyGILState_Release(gil);
}

static void on_checkpoint_report(void *self, int64_t steps, const char *uuid)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    tell_reported(self, "checkpoint", steps, PyUnicode_FromString(uuid));
    PyGILState_Release(gil);
}

/* ---- run ---- */

/* evaluate_batch is None where the trial evaluates the whole dataset. */
static int open_client(struct ext_client *c, PyObject *self)
{
    c->self = self;
    c->plain = PyObject_GetAttrString(self, "plain");
    c->train_batch = PyObject_GetAttrString(self, "train_batch");
    c->evaluate_batch = PyObject_GetAttrString(self, "evaluate_batch");
    if (!c->plain || !c->train_batch || !c->evaluate_batch)
        return -1;
    c->table = hooks;
    if (c->evaluate_batch == Py_None)
        c->table.evaluate_batch = NULL;
    else
        c->table.evaluate_all = NULL;
    return 0;
}

static void close_client(struct ext_client *c)
{
    ext_loop_close(c->loop);
    ext_parts_finish(&c->parts);
    PyObject *owned[] = {c->loop,  c->plain,      c->train_batch, c->evaluate_batch, c->train,
                         c->valid, c->train_next, c->valid_next,  c->batch,          c->tensorboard,
                         c->type,  c->value,      c->traceback};
    for (size_t i = 0; i < DET_ARRAY_LEN(owned); i++)
        Py_XDECREF(owned[i]);
}

/* The loop's outcome as Python's: the first exception whole; else what the loop itself found. */
static PyObject *outcome_of_loop(struct ext_client *c, int rc, const struct det_err *err)
{
    if (rc == 0 && err->code == DET_EINVALIDHP)
        return PyUnicode_FromString(err->text);
    if (rc == 0 && !c->type)
        Py_RETURN_NONE;
    if (!c->type)
        return ext_raise(err);
    PyErr_Restore(c->type, c->value, c->traceback);
    c->type = c->value = c->traceback = NULL;
    return NULL;
}

PyObject *ext_run(PyObject *module, PyObject *args)
{
    PyObject *config, *self, *ret = NULL;
    struct det_loop_config c = LOOP_CONFIG_INIT;
    struct ext_client client = {0};
    struct det_err err = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "OO", &config, &self))
        return NULL;
    if (ext_config_fill(&c, config) == 0 && open_client(&client, self) == 0) {
        if (!c.managed)
            c.observer = (struct loop_observer){.self = &client,
                                                .training = on_training_report,
                                                .validation = on_validation_report,
                                                .checkpoint = on_checkpoint_report};
        const struct det_loop_trial trial = {.type = &client.table, .self = &client};
        Py_BEGIN_ALLOW_THREADS rc = loop_run(&c, &trial, &err);
        Py_END_ALLOW_THREADS ret = outcome_of_loop(&client, rc, &err);
    }
    close_client(&client);
    loop_config_finish(&c);
    return ret;
}
