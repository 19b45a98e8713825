/* EventWriter(directory): TensorBoard's event files. determined/tensorboard makes plain numbers of
 * what users give. */
#include "ext.h"

#include "tb.h"

struct events {
    PyObject_HEAD struct det_tensorboard *w;
};

static struct det_tensorboard *writer_of(PyObject *self)
{
    return ((struct events *)self)->w;
}

/* The writer's errors are sticky: each call raises the first one. */
static PyObject *finish_call(PyObject *self)
{
    struct det_err err = {0};
    if (det_tensorboard_error(writer_of(self), &err) < 0)
        return ext_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *add_scalar(PyObject *self, PyObject *args)
{
    const char *tag;
    double value;
    long long step;
    if (!PyArg_ParseTuple(args, "sdL", &tag, &value, &step))
        return NULL;
    det_tensorboard_add_scalar(writer_of(self), tag, value, step);
    return finish_call(self);
}

/* One of several numbers in one chart. */
static PyObject *add_named(PyObject *self, PyObject *args)
{
    const char *tag;
    struct det_tensorboard_named named;
    long long step;
    if (!PyArg_ParseTuple(args, "ssdL", &tag, &named.name, &named.value, &step))
        return NULL;
    det_tensorboard_add_scalars(writer_of(self), tag, &named, 1, step);
    return finish_call(self);
}

/* `values`: the bytes of doubles. */
static PyObject *add_histogram(PyObject *self, PyObject *args)
{
    const char *tag, *bytes;
    Py_ssize_t n;
    long long step;
    if (!PyArg_ParseTuple(args, "sy#L", &tag, &bytes, &n, &step))
        return NULL;
    det_cleanup(freep) double *x = det_alloc((size_t)n + 1); /* aligned, as bytes need not be */
    memcpy(x, bytes, (size_t)n);
    tb_add_histogram(writer_of(self), tag, x, (size_t)n / sizeof *x, step);
    return finish_call(self);
}

/* The bytes of height x width x channels doubles of 0 to 255. */
static PyObject *add_image(PyObject *self, PyObject *args)
{
    const char *tag, *bytes;
    Py_ssize_t n;
    long long h, w, c, step;
    if (!PyArg_ParseTuple(args, "sy#LLLL", &tag, &bytes, &n, &h, &w, &c, &step))
        return NULL;
    const struct tb_pixels p = {.h = h, .w = w, .c = c, .row = w * c, .column = c, .channel = 1};
    if (!tb_pixels_fit(&p) || (size_t)n != (size_t)(h * w * c) * sizeof(double)) {
        PyErr_Format(PyExc_ValueError,
                     "\"%s\" is no image: 1 to 4 channels and sides from 1 to 65535 are", tag);
        return NULL;
    }
    det_cleanup(freep) double *x = det_alloc((size_t)n);
    memcpy(x, bytes, (size_t)n);
    tb_add_image(writer_of(self), tag, x, &p, 1, step);
    return finish_call(self);
}

static PyObject *add_text(PyObject *self, PyObject *args)
{
    const char *tag, *text;
    long long step;
    if (!PyArg_ParseTuple(args, "ssL", &tag, &text, &step))
        return NULL;
    det_tensorboard_add_text(writer_of(self), tag, text, step);
    return finish_call(self);
}

/* What is in this directory is not written a second time. */
static PyObject *remember_directory(PyObject *self, PyObject *args)
{
    const char *dir;
    struct det_err err = {0};
    if (!PyArg_ParseTuple(args, "s", &dir))
        return NULL;
    if (tb_remember(writer_of(self), dir, &err) < 0)
        return ext_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *flush_events(PyObject *self, PyObject *args)
{
    det_tensorboard_flush(writer_of(self));
    return finish_call(self);
}

static PyObject *close_files(PyObject *self, PyObject *args)
{
    det_tensorboard_close(writer_of(self));
    return finish_call(self);
}

/* ---- the type ---- */

static PyObject *create_events(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *dir;
    struct det_err err = {0};
    if (!PyArg_ParseTuple(args, "s", &dir))
        return NULL;
    struct det_tensorboard *w = det_tensorboard_create(dir, &err);
    if (!w)
        return ext_raise(&err);
    struct events *e = PyObject_New(struct events, type);
    if (!e)
        det_tensorboard_destroy(w);
    else
        e->w = w;
    return (PyObject *)e;
}

static void dealloc_events(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    det_tensorboard_destroy(writer_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"add_scalar", add_scalar, METH_VARARGS, "add_scalar(tag, value, step)"},
    {"add_named", add_named, METH_VARARGS, "add_named(main_tag, name, value, step)"},
    {"add_histogram", add_histogram, METH_VARARGS, "add_histogram(tag, doubles, step)"},
    {"add_image", add_image, METH_VARARGS,
     "add_image(tag, doubles, height, width, channels, step)"},
    {"add_text", add_text, METH_VARARGS, "add_text(tag, text, step)"},
    {"remember", remember_directory, METH_VARARGS,
     "remember(directory): its values are not written again"},
    {"flush", flush_events, METH_NOARGS, NULL},
    {"close", close_files, METH_NOARGS, "a later write opens a new file"},
    {0},
};

PyObject *ext_events_type(void)
{
    static PyObject *type;
    static PyType_Slot slots[] = {
        {Py_tp_new, create_events}, {Py_tp_methods, methods}, {Py_tp_dealloc, dealloc_events}, {0}};
    static PyType_Spec spec = {.name = "determined._loop.EventWriter",
                               .basicsize = sizeof(struct events),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    if (!type)
        type = PyType_FromSpec(&spec);
    return type;
}
