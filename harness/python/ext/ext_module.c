#include "ext.h"

#include "log.h"
#include "storage.h"

static PyMethodDef functions[] = {
    {"run", ext_run, METH_VARARGS,
     "run(config, client): trains to the end; None, or the text of an InvalidHP"},
    {"experiment", ext_experiment, METH_VARARGS,
     "experiment(path or None, overrides, entrypoint, point): (config, hparams) of a local run"},
    {"store_begin", ext_store_begin, METH_VARARGS,
     "store_begin(root, id or None, uuid) -> the directory to write to"},
    {"store_ready", ext_store_ready, METH_VARARGS,
     "store_ready(root, id): RuntimeError says that another store, or none, is there"},
    {"store_note", ext_store_note, METH_VARARGS,
     "store_note(text): the run fails for want of its store, or of room there"},
    {"store_publish", ext_store_publish, METH_VARARGS, "store_publish(root, id or None, uuid)"},
    {"store_delete", ext_store_delete, METH_VARARGS, "store_delete(root, id or None, uuid)"},
    {"store_hash", ext_store_hash, METH_VARARGS, "store_hash(path of a file) -> hex"},
    {"store_verify", ext_store_verify, METH_VARARGS,
     "store_verify(directory, metadata): a damaged file is a RuntimeError that names it"},
    {0},
};

static struct PyModuleDef module_def = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "determined._loop",
                                        .m_doc = "The training loop.",
                                        .m_size = -1,
                                        .m_methods = functions};

static int add_type(PyObject *module, const char *name, PyObject *type)
{
    int rc = type ? PyModule_AddObjectRef(module, name, type) : -1;
    return rc;
}

PyMODINIT_FUNC PyInit__loop(void);
PyMODINIT_FUNC PyInit__loop(void)
{
    PyObject *module = PyModule_Create(&module_def);
    if (!module)
        return NULL;
    log_init("determined", LOG_INFO);
    log_set_task_format();
    if (add_type(module, "Loop", ext_loop_type()) < 0 ||
        add_type(module, "Comm", ext_comm_type()) < 0 ||
        add_type(module, "EventWriter", ext_events_type()) < 0 ||
        PyModule_AddStringConstant(module, "HASHES", STORAGE_HASHES) < 0)
        Py_CLEAR(module);
    return module;
}
