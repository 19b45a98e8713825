/* What a local run says to the person in front of it: client.observe(kind, steps, what). */
#include "ext.h"

/* `what` is taken; it is NULL where an exception is in flight. What goes wrong here stops nothing. */
static void observe(struct ext_client *c, const char *kind, int64_t steps, PyObject *what)
{
    PyObject *args = what ? Py_BuildValue("(sLN)", kind, (long long)steps, what) : NULL;
    PyObject *r = args ? PyObject_CallObject(c->observe, args) : NULL;
    if (!r)
        PyErr_WriteUnraisable(c->observe);
    Py_XDECREF(r);
    Py_XDECREF(args);
}

static void on_seen_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    observe(self, "training", steps, ext_metrics_dict(avg));
    PyGILState_Release(gil);
}

static void on_seen_validation(void *self, int64_t steps, const struct loop_metrics *metrics)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    observe(self, "validation", steps, ext_metrics_dict(metrics));
    PyGILState_Release(gil);
}

static void on_seen_checkpoint(void *self, int64_t steps, const char *uuid)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    observe(self, "checkpoint", steps, PyUnicode_FromString(uuid));
    PyGILState_Release(gil);
}

struct loop_observer ext_observer(struct ext_client *c)
{
    return (struct loop_observer){.self = c,
                                  .training = on_seen_training,
                                  .validation = on_seen_validation,
                                  .checkpoint = on_seen_checkpoint};
}
