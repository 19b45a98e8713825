/* The loop's configuration from the dict that determined/pytorch/_trainer.py makes. */
#include "ext.h"

#include "loop_env.h"

#include <string.h>

/* ---- single values: 0, or -1 with an exception; an absent or None value changes nothing ---- */

static PyObject *get_item(PyObject *d, const char *key)
{
    PyObject *v = PyDict_GetItemString(d, key); /* borrowed */
    return v == Py_None ? NULL : v;
}

static int take_i64(PyObject *d, const char *key, int64_t *ret)
{
    PyObject *v = get_item(d, key);
    if (!v)
        return 0;
    *ret = PyLong_AsLongLong(v);
    return *ret == -1 && PyErr_Occurred() ? -1 : 0;
}

static int take_int(PyObject *d, const char *key, int *ret)
{
    int64_t v = *ret;
    if (take_i64(d, key, &v) < 0)
        return -1;
    *ret = (int)v;
    return 0;
}

static int take_bool(PyObject *d, const char *key, bool *ret)
{
    PyObject *v = get_item(d, key);
    int on = v ? PyObject_IsTrue(v) : *ret;
    if (on < 0)
        return -1;
    *ret = on;
    return 0;
}

static int take_str(PyObject *d, const char *key, char **ret)
{
    PyObject *v = get_item(d, key);
    const char *s = v ? PyUnicode_AsUTF8AndSize(v, NULL) : NULL;
    if (v && !s)
        return -1;
    if (s) {
        free(*ret);
        *ret = det_strdup(s);
    }
    return 0;
}

static int take_json(PyObject *d, const char *key, json_t **ret)
{
    PyObject *v = get_item(d, key);
    json_t *j = v ? ext_to_json(v) : NULL;
    if (v && !j)
        return -1;
    if (j) {
        json_decref(*ret);
        *ret = j;
    }
    return 0;
}

/* bytes: an array of int64_t, which lives as long as the dict */
static int take_counts(PyObject *bytes, struct loop_unit *ret)
{
    char *p;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(bytes, &p, &n) < 0)
        return -1;
    ret->at = (const int64_t *)(const void *)p;
    ret->n_at = (size_t)n / sizeof *ret->at;
    return 0;
}

/* ("batches" | "epochs", number or bytes) */
static int take_unit(PyObject *d, const char *key, struct loop_unit *ret)
{
    PyObject *v = get_item(d, key), *count;
    const char *kind;
    if (!v)
        return 0;
    if (!PyTuple_Check(v)) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of a unit and a number", key);
        return -1;
    }
    if (!PyArg_ParseTuple(v, "sO", &kind, &count))
        return -1;
    *ret = (struct loop_unit){.kind = strcmp(kind, "epochs") == 0 ? LOOP_EPOCHS : LOOP_BATCHES};
    if (PyBytes_Check(count))
        return take_counts(count, ret);
    ret->n = PyLong_AsLongLong(count);
    return ret->n == -1 && PyErr_Occurred() ? -1 : 0;
}

static int take_policy(PyObject *d, enum loop_policy *ret)
{
    char *s = NULL;
    if (take_str(d, "checkpoint_policy", &s) < 0)
        return -1;
    if (s)
        *ret = strcmp(s, "best") == 0  ? LOOP_POLICY_BEST
               : strcmp(s, "all") == 0 ? LOOP_POLICY_ALL
                                       : LOOP_POLICY_NONE;
    free(s);
    return 0;
}

/* ---- groups ---- */

static int take_max_length(struct det_loop_config *c, PyObject *d)
{
    struct loop_unit u = {.n = -1};
    if (take_unit(d, "max_length", &u) < 0)
        return -1;
    if (u.n < 0)
        return 0;
    c->length_unit = u.kind == LOOP_EPOCHS ? LOOP_LEN_EPOCHS : LOOP_LEN_BATCHES;
    c->max_length = u.n;
    return 0;
}

static int take_schedule(struct det_loop_config *c, PyObject *d)
{
    return take_unit(d, "validation_period", &c->validation_period) < 0 ||
                   take_unit(d, "checkpoint_period", &c->checkpoint_period) < 0 ||
                   take_unit(d, "reporting_period", &c->reporting_period) < 0 ||
                   take_i64(d, "aggregation_frequency", &c->aggregation_frequency) < 0 ||
                   take_bool(d, "average_aggregated_gradients", &c->average_aggregated_gradients) <
                       0 ||
                   take_bool(d, "step_zero_validation", &c->step_zero_validation) < 0 ||
                   take_bool(d, "test_mode", &c->test_mode) < 0 || take_policy(d, &c->policy) < 0 ||
                   take_max_length(c, d) < 0
               ? -1
               : 0;
}

static int take_names(struct det_loop_config *c, PyObject *d)
{
    return take_str(d, "latest_checkpoint", &c->latest_checkpoint) < 0 ||
                   take_str(d, "trial_cls_spec", &c->trial_cls_spec) < 0 ||
                   take_str(d, "trial_type", &c->trial_type) < 0 ||
                   take_str(d, "framework", &c->framework) < 0 ||
                   take_str(d, "code_dir", &c->code_dir) < 0 ||
                   take_str(d, "checkpoint_dir", &c->checkpoint_dir) < 0 ||
                   take_bool(d, "is_trainer", &c->is_trainer) < 0 ||
                   take_json(d, "experiment_config", &c->experiment_config) < 0 ||
                   take_json(d, "hparams", &c->hparams) < 0
               ? -1
               : 0;
}

/* The ranks of the control plane; the strings are those of the dict, which outlives the run. */
static int take_ranks(struct det_loop_config *c, PyObject *d)
{
    PyObject *host = get_item(d, "chief_host"), *secret = get_item(d, "secret");
    c->ranks.chief_host = host ? PyUnicode_AsUTF8AndSize(host, NULL) : NULL;
    c->ranks.secret = secret ? PyUnicode_AsUTF8AndSize(secret, NULL) : NULL;
    return PyErr_Occurred() || take_int(d, "rank", &c->ranks.rank) < 0 ||
                   take_int(d, "size", &c->ranks.size) < 0 ||
                   take_int(d, "local_rank", &c->ranks.local_rank) < 0 ||
                   take_int(d, "local_size", &c->ranks.local_size) < 0 ||
                   take_int(d, "port", &c->ranks.port) < 0
               ? -1
               : 0;
}

int ext_config_fill(struct det_loop_config *c, PyObject *d)
{
    struct det_err err = {0};
    bool managed = false;
    if (!PyDict_Check(d)) {
        PyErr_SetString(PyExc_TypeError, "the configuration must be a dict");
        return -1;
    }
    if (take_bool(d, "managed", &managed) < 0)
        return -1;
    if (managed && loop_env_config(c, &err) < 0) {
        ext_raise(&err);
        return -1;
    }
    c->trial_type = det_strdup("PyTorchTrial");
    free(c->latest_checkpoint); /* what fit() was given counts, None too */
    c->latest_checkpoint = NULL;
    return take_names(c, d) < 0 || take_schedule(c, d) < 0 || take_ranks(c, d) < 0 ? -1 : 0;
}
