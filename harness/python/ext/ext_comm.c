/* Comm: collectives of bytes between processes; determined.core.DistributedContext stands on it. */
#include "ext.h"

struct ext_comm {
    PyObject_HEAD struct comm *c; /* NULL: closed */
};

static PyObject *comm_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", "size",   "local_rank", "local_size", "chief_host",
                            "port", "secret", "timeout_ms", NULL};
    struct comm_options o = {.join_timeout_ms = 300000};
    struct det_err err = {0};
    struct comm *c = NULL;
    int rc;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iiiizi|zi", names, &o.rank, &o.size,
                                     &o.local_rank, &o.local_size, &o.chief_host, &o.port,
                                     &o.secret, &o.timeout_ms))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = comm_open(&o, &c, &err);
    Py_END_ALLOW_THREADS if (rc < 0) return ext_raise(&err);
    struct ext_comm *self = PyObject_New(struct ext_comm, type);
    if (self)
        self->c = c;
    else
        comm_close(c);
    return (PyObject *)self;
}

static struct comm *comm_of(PyObject *self)
{
    struct comm *c = ((struct ext_comm *)self)->c;
    if (!c)
        PyErr_SetString(PyExc_RuntimeError, "the distributed context is closed");
    return c;
}

static PyObject *blobs_list(const struct comm_blobs *b)
{
    PyObject *list = PyList_New(b->n);
    for (int i = 0; list && i < b->n; i++)
        PyList_SetItem(list, i, PyBytes_FromStringAndSize(b->v[i], (Py_ssize_t)b->bytes[i]));
    return list;
}

/* A rank may have left with a reason: that is what went wrong. */
static PyObject *raise_failure(struct comm *c, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    bool left;
    Py_BEGIN_ALLOW_THREADS left = comm_left(c, &why);
    Py_END_ALLOW_THREADS if (left) det_fail(err, err->code, "%s", buf_str(&why));
    return ext_raise(err);
}

static PyObject *allgather_bytes(PyObject *self, PyObject *args)
{
    const char *p;
    Py_ssize_t n;
    struct det_err err = {0};
    struct comm_blobs all = {0};
    struct comm *c = comm_of(self);
    int rc;
    if (!c || !PyArg_ParseTuple(args, "y#", &p, &n))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = comm_allgather(c, p, (size_t)n, &all, &err);
    Py_END_ALLOW_THREADS PyObject *list = rc < 0 ? raise_failure(c, &err) : blobs_list(&all);
    comm_blobs_finish(&all);
    return list;
}

static PyObject *broadcast_bytes(PyObject *self, PyObject *args)
{
    const char *p;
    Py_ssize_t n;
    struct det_err err = {0};
    void *got = NULL;
    size_t got_n = 0;
    struct comm *c = comm_of(self);
    int rc;
    if (!c || !PyArg_ParseTuple(args, "y#", &p, &n))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = comm_broadcast_bytes(c, p, (size_t)n, &got, &got_n, &err);
    Py_END_ALLOW_THREADS PyObject *bytes =
        rc < 0 ? raise_failure(c, &err) : PyBytes_FromStringAndSize(got, (Py_ssize_t)got_n);
    free(got);
    return bytes;
}

static PyObject *leave_group(PyObject *self, PyObject *args)
{
    const char *why;
    struct det_err err = {0};
    struct comm *c = comm_of(self);
    if (!c || !PyArg_ParseTuple(args, "s", &why))
        return NULL;
    Py_BEGIN_ALLOW_THREADS det_ignore(comm_leave(c, why, &err),
                                      "where rank 0 is gone or silent the others see it");
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *close_comm(PyObject *self, PyObject *args)
{
    struct ext_comm *s = (struct ext_comm *)self;
    comm_close(s->c);
    s->c = NULL;
    Py_RETURN_NONE;
}

static void dealloc_comm(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    comm_close(((struct ext_comm *)self)->c);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"allgather", allgather_bytes, METH_VARARGS, "allgather(bytes) -> [bytes of each rank]"},
    {"broadcast", broadcast_bytes, METH_VARARGS, "broadcast(bytes) -> rank 0's bytes"},
    {"leave", leave_group, METH_VARARGS, "leave(text): the others' collectives fail with the text"},
    {"close", close_comm, METH_NOARGS, NULL},
    {0},
};

PyObject *ext_comm_type(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_new, comm_new}, {Py_tp_methods, methods}, {Py_tp_dealloc, dealloc_comm}, {0}};
    static PyType_Spec spec = {.name = "determined._loop.Comm",
                               .basicsize = sizeof(struct ext_comm),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    return PyType_FromSpec(&spec);
}
