#include "ext.h"

/* ---- JSON ---- */

static PyObject *array_from(const json_t *j)
{
    size_t n = json_array_size(j);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *v = ext_from_json(json_array_get(j, i));
        if (!v || PyList_SetItem(list, (Py_ssize_t)i, v) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *object_from(const json_t *j)
{
    PyObject *dict = PyDict_New();
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)j, key, v)
    {
        PyObject *value = dict ? ext_from_json(v) : NULL;
        int rc = value ? PyDict_SetItemString(dict, key, value) : -1;
        Py_XDECREF(value);
        if (rc < 0) {
            Py_XDECREF(dict);
            return NULL;
        }
    }
    return dict;
}

PyObject *ext_from_json(const json_t *j)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_TRUE: Py_RETURN_TRUE;
    case JSON_FALSE: Py_RETURN_FALSE;
    case JSON_INTEGER: return PyLong_FromLongLong(json_integer_value(j));
    case JSON_REAL: return PyFloat_FromDouble(json_real_value(j));
    case JSON_STRING:
        return PyUnicode_FromStringAndSize(json_string_value(j), (Py_ssize_t)json_string_length(j));
    case JSON_ARRAY: return array_from(j);
    case JSON_OBJECT: return object_from(j);
    case JSON_NULL: break;
    }
    Py_RETURN_NONE;
}

/* Python's own json module is the judge of what can be written; the text is parsed here. */
json_t *ext_to_json(PyObject *value)
{
    PyObject *module = PyImport_ImportModule("json");
    PyObject *text = module ? PyObject_CallMethod(module, "dumps", "O", value) : NULL;
    Py_ssize_t n = 0;
    const char *s = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    struct det_err err = {0};
    json_t *j = s ? json_parse(s, (size_t)n, &err) : NULL;
    if (s && !j)
        PyErr_SetString(PyExc_ValueError, err.text);
    Py_XDECREF(text);
    Py_XDECREF(module);
    return j;
}

/* ---- Python to metrics ---- */

static int take_list(struct loop_metrics *m, const char *name, PyObject *list)
{
    Py_ssize_t n = PyList_Size(list);
    double *v = det_zalloc(((size_t)n + 1) * sizeof *v);
    for (Py_ssize_t i = 0; i < n; i++) {
        v[i] = PyFloat_AsDouble(PyList_GetItem(list, i));
        if (v[i] == -1 && PyErr_Occurred()) {
            free(v);
            return -1;
        }
    }
    loop_metrics_array(m, name, v, (size_t)n);
    free(v);
    return 0;
}

static int take_text(struct loop_metrics *m, const char *name, PyObject *text)
{
    Py_ssize_t n;
    struct det_err err = {0};
    const char *s = PyUnicode_AsUTF8AndSize(text, &n);
    JSON_OWN j = s ? json_parse(s, (size_t)n, &err) : NULL;
    if (!j) {
        if (s)
            PyErr_Format(PyExc_ValueError, "metric \"%s\": %s", name, err.text);
        return -1;
    }
    loop_metrics_json(m, name, j);
    return 0;
}

/* 1: taken; 0: not of the kinds that need no help; -1: an exception. */
static int take_simple(struct loop_metrics *m, const char *name, PyObject *v)
{
    if (PyFloat_Check(v) || PyLong_Check(v)) {
        double x = PyFloat_AsDouble(v);
        if (x == -1 && PyErr_Occurred())
            return -1;
        loop_metrics_f64(m, name, x);
    } else if (v == Py_None) {
        loop_metrics_none(m, name);
    } else if (PyList_Check(v)) {
        return take_list(m, name, v) < 0 ? -1 : 1;
    } else if (PyUnicode_Check(v)) {
        return take_text(m, name, v) < 0 ? -1 : 1;
    } else {
        return 0;
    }
    return 1;
}

static int take_one(struct loop_metrics *m, const char *name, PyObject *v, PyObject *plain)
{
    bool bare = PyFloat_Check(v) || PyLong_Check(v) || v == Py_None;
    PyObject *p = bare ? Py_NewRef(v) : PyObject_CallFunctionObjArgs(plain, v, NULL);
    int rc = p ? take_simple(m, name, p) : -1;
    if (rc == 0)
        PyErr_Format(PyExc_TypeError, "metric \"%s\" is a %R, not a number or an array", name,
                     (PyObject *)Py_TYPE(p));
    Py_XDECREF(p);
    return rc > 0 ? 0 : -1;
}

int ext_metrics_take(struct loop_metrics *m, PyObject *dict, PyObject *plain)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (!name) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "metric names must be str, not %R", key);
            return -1;
        }
        if (take_one(m, name, value, plain) < 0)
            return -1;
    }
    return 0;
}

/* ---- metrics to Python ---- */

static PyObject *value_of(const struct loop_metric *x)
{
    PyObject *list;
    switch (x->kind) {
    case LOOP_METRIC_F64: return PyFloat_FromDouble(x->f64);
    case LOOP_METRIC_JSON: return ext_from_json(x->json);
    case LOOP_METRIC_ARRAY:
        list = PyList_New((Py_ssize_t)x->n);
        for (size_t i = 0; list && i < x->n; i++)
            PyList_SetItem(list, (Py_ssize_t)i, PyFloat_FromDouble(x->array[i]));
        return list;
    case LOOP_METRIC_NONE:
    case LOOP_METRIC_LATER: break;
    }
    Py_RETURN_NONE;
}

PyObject *ext_metrics_dict(const struct loop_metrics *m)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < m->n; i++) {
        PyObject *v = value_of(&m->v[i]);
        if (!v || PyDict_SetItemString(dict, m->v[i].name, v) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(v);
    }
    return dict;
}

PyObject *ext_metrics_dicts(const struct loop_metrics *v, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *d = ext_metrics_dict(&v[i]);
        if (!d || PyList_SetItem(list, (Py_ssize_t)i, d) < 0)
            Py_CLEAR(list);
    }
    return list;
}
