/* experiment(): the configuration of a run without a cluster, as det-harness run reads it. */
#include "ext.h"

#include "loop_local.h"

static int override_each(json_t *raw, PyObject *list)
{
    struct det_err err = {0};
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        const char *line = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!line)
            return -1;
        if (expconf_override(raw, line, &err) < 0) {
            ext_raise(&err);
            return -1;
        }
    }
    return 0;
}

/* (config, hparams) of a complete configuration. */
static PyObject *pair_of(const json_t *config, int64_t point)
{
    struct det_err err = {0};
    struct expconf view;
    JSON_OWN hparams = NULL;
    if (expconf_view(config, &view, &err) < 0)
        return ext_raise(&err);
    int rc = loop_local_hparams(&view, point, &hparams, &err);
    expconf_finish(&view);
    if (rc < 0)
        return ext_raise(&err);
    PyObject *a = ext_from_json(config), *b = a ? ext_from_json(hparams) : NULL;
    PyObject *ret = b ? PyTuple_Pack(2, a, b) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return ret;
}

PyObject *ext_experiment(PyObject *module, PyObject *args)
{
    const char *path, *entrypoint;
    PyObject *overrides;
    long long point;
    struct det_err err = {0};
    JSON_OWN raw = NULL;
    JSON_OWN config = NULL;
    if (!PyArg_ParseTuple(args, "zOsL", &path, &overrides, &entrypoint, &point))
        return NULL;
    if (!PyList_Check(overrides)) {
        PyErr_SetString(PyExc_TypeError, "the overrides must be a list of str");
        return NULL;
    }
    if (loop_local_read(path, &raw, &err) < 0)
        return ext_raise(&err);
    if (override_each(raw, overrides) < 0)
        return NULL;
    if (loop_local_complete(raw, entrypoint, &config, &err) < 0)
        return ext_raise(&err);
    return pair_of(config, point);
}
