/* Errors between C and Python: a DET_E* as an exception, an exception as the run's failure. */
#include "ext.h"

#define CAUSES_MAX 8    /* of an exception that was raised for another one */
#define ERRNO_END  4096 /* the kernel has none from there */

static PyObject *exception_of(int code)
{
    switch (code) {
    case DET_ENOENT: return PyExc_FileNotFoundError;
    case DET_ENOMEM: return PyExc_MemoryError;
    case DET_ETIMEOUT: return PyExc_TimeoutError;
    case DET_EPEER: return PyExc_ConnectionError;
    default: return PyExc_RuntimeError;
    }
}

/* The exception says its errno as an OSError would, so that it comes back with it. */
PyObject *ext_raise(const struct det_err *err)
{
    PyObject *type, *value, *traceback, *sys;
    PyErr_SetString(exception_of(err->code), err->text);
    if (err->sys == 0)
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    sys = PyLong_FromLong(err->sys);
    if (!sys || PyObject_SetAttrString(value, "errno", sys) < 0)
        PyErr_Clear();
    Py_XDECREF(sys);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *invalid_hp_type(void)
{
    PyObject *module = PyImport_ImportModule("determined");
    PyObject *type = module ? PyObject_GetAttrString(module, "InvalidHP") : NULL;
    Py_XDECREF(module);
    PyErr_Clear();
    return type;
}

/* The errno that an exception, or one that it was raised for, brings; 0: none. */
static int errno_of(PyObject *value)
{
    long sys = 0;
    PyObject *at = value;
    Py_XINCREF(at);
    for (int depth = 0; at && sys <= 0 && depth < CAUSES_MAX; depth++) {
        PyObject *n = PyObject_GetAttrString(at, "errno");
        sys = n && PyLong_Check(n) ? PyLong_AsLong(n) : 0;
        Py_XDECREF(n);
        PyErr_Clear();
        PyObject *cause = PyException_GetCause(at);
        PyObject *next = cause ? cause : PyException_GetContext(at);
        Py_DECREF(at);
        at = next;
    }
    Py_XDECREF(at);
    return sys > 0 && sys < ERRNO_END ? (int)sys : 0;
}

static void describe_exception(PyObject *type, PyObject *value, struct det_err *err)
{
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *n = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *t = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    det_fail(err, err->code, "%s: %s", n ? n : "exception", t ? t : "");
    PyErr_Clear();
    err->sys = value ? errno_of(value) : 0;
    Py_XDECREF(name);
    Py_XDECREF(text);
}

int ext_failed(struct ext_client *c, struct det_err *err)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *invalid = invalid_hp_type();
    err->code = invalid && PyErr_GivenExceptionMatches(type, invalid) ? DET_EINVALIDHP : DET_EINVAL;
    Py_XDECREF(invalid);
    describe_exception(type, value, err);
    if (c->type) { /* the first one counts */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return err->code;
    }
    c->type = type;
    c->value = value;
    c->traceback = traceback;
    return err->code;
}

int ext_call(struct ext_client *c, PyObject *fn, PyObject *args, PyObject **ret,
             struct det_err *err)
{
    PyObject *r = args ? PyObject_CallObject(fn, args) : NULL;
    Py_XDECREF(args);
    if (!r)
        return ext_failed(c, err);
    if (ret)
        *ret = r;
    else
        Py_DECREF(r);
    return 0;
}
