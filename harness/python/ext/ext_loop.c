/* Loop: the run in progress as its trial may ask it, and step_optimizer. */
#include "ext.h"

struct ext_loop {
    PyObject_HEAD struct loop *l; /* NULL: the run has ended */
};

static struct loop *loop_of(PyObject *self)
{
    struct loop *l = ((struct ext_loop *)self)->l;
    if (!l)
        PyErr_SetString(PyExc_RuntimeError, "the training run has ended");
    return l;
}

static PyObject *get_batch_idx(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    return l ? PyLong_FromLongLong(loop_batch_idx(l)) : NULL;
}

static PyObject *get_epoch_len(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    return l ? PyLong_FromLongLong(loop_epoch_len(l)) : NULL;
}

static PyObject *get_batches_trained(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    return l ? PyLong_FromLongLong(loop_batches_trained(l)) : NULL;
}

static PyObject *get_is_update_batch(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    return l ? PyBool_FromLong(loop_is_update_batch(l)) : NULL;
}

static PyObject *get_stop(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    return l ? PyBool_FromLong(loop_get_stop_requested(l)) : NULL;
}

static int set_stop(PyObject *self, PyObject *value, void *arg)
{
    struct loop *l = loop_of(self);
    int on = value ? PyObject_IsTrue(value) : 0;
    if (!l || on < 0)
        return -1;
    loop_set_stop_requested(l, on);
    return 0;
}

static PyObject *get_tensorboard_kept(PyObject *self, void *arg)
{
    struct loop *l = loop_of(self);
    det_cleanup(freep) char *kept = l ? loop_tensorboard_kept(l) : NULL;
    if (!l)
        return NULL;
    return kept ? PyUnicode_FromString(kept) : Py_NewRef(Py_None);
}

/* ---- step_optimizer(reduce, scale, clip, step, zero, keep_grads): callables, three or None */

struct step {
    PyObject *reduce, *scale, *clip, *step, *zero;
};

/* The hooks of a step run with the GIL held: the loop calls them from the method below. */
static int call_hook(PyObject *fn, PyObject *arg, struct det_err *err)
{
    PyObject *r = PyObject_CallFunctionObjArgs(fn, arg, NULL);
    if (!r)
        return det_fail(err, DET_EINVAL, "an exception");
    Py_DECREF(r);
    return 0;
}

static int on_scale(void *self, double factor, struct det_err *err)
{
    PyObject *f = PyFloat_FromDouble(factor);
    int rc =
        f ? call_hook(((struct step *)self)->scale, f, err) : det_fail(err, DET_ENOMEM, "memory");
    Py_XDECREF(f);
    return rc;
}

static int on_clip(void *self, struct det_err *err)
{
    return call_hook(((struct step *)self)->clip, NULL, err);
}

static int on_step(void *self, struct det_err *err)
{
    return call_hook(((struct step *)self)->step, NULL, err);
}

static int on_zero(void *self, struct det_err *err)
{
    return call_hook(((struct step *)self)->zero, NULL, err);
}

/* Horovod; DistributedDataParallel averages over ranks in its own backward. */
static int on_reduce(void *self, struct comm *comm, struct det_err *err)
{
    return call_hook(((struct step *)self)->reduce, NULL, err);
}

static PyObject *step_optimizer(PyObject *self, PyObject *args)
{
    struct step s;
    int keep;
    struct det_err err = {0};
    struct loop *l = loop_of(self);
    if (!l ||
        !PyArg_ParseTuple(args, "OOOOOp", &s.reduce, &s.scale, &s.clip, &s.step, &s.zero, &keep))
        return NULL;
    const struct loop_step_hooks h = {.self = &s,
                                      .reduce = s.reduce == Py_None ? NULL : on_reduce,
                                      .scale = on_scale,
                                      .clip = s.clip == Py_None ? NULL : on_clip,
                                      .step = on_step,
                                      .zero = on_zero,
                                      .sum_aggregated = s.scale == Py_None,
                                      .keep_grads = keep};
    if (loop_step_optimizer(l, &h, &err) == 0)
        Py_RETURN_NONE;
    return PyErr_Occurred() ? NULL : ext_raise(&err);
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    {"step_optimizer", step_optimizer, METH_VARARGS,
     "step_optimizer(reduce, scale, clip, step, zero, keep_grads)"},
    {0},
};
static PyGetSetDef getset[] = {
    {"batch_idx", get_batch_idx, NULL, "index of the batch being trained; -1 before", NULL},
    {"epoch_len", get_epoch_len, NULL, "batches of this rank's share of an epoch", NULL},
    {"batches_trained", get_batches_trained, NULL, NULL, NULL},
    {"tensorboard_kept", get_tensorboard_kept, NULL,
     "where the store has the TensorBoard files of this trial's earlier runs, or None", NULL},
    {"is_update_batch", get_is_update_batch, NULL, NULL, NULL},
    {"stop_requested", get_stop, set_stop, "leave at the next boundary", NULL},
    {0},
};

static void dealloc_loop(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *ext_loop_type(void)
{
    static PyObject *type;
    static PyType_Slot slots[] = {
        {Py_tp_methods, methods}, {Py_tp_getset, getset}, {Py_tp_dealloc, dealloc_loop}, {0}};
    static PyType_Spec spec = {.name = "determined._loop.Loop",
                               .basicsize = sizeof(struct ext_loop),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    if (!type)
        type = PyType_FromSpec(&spec);
    return type;
}

PyObject *ext_loop_new(struct loop *l)
{
    PyObject *type = ext_loop_type();
    struct ext_loop *o = type ? PyObject_New(struct ext_loop, (PyTypeObject *)type) : NULL;
    if (o)
        o->l = l;
    return (PyObject *)o;
}

void ext_loop_close(PyObject *loop)
{
    if (loop)
        ((struct ext_loop *)loop)->l = NULL;
}
