/* Checkpoints of the Core API: published and checked as the loop's own are. Each call opens the
 * store anew: between two of them it may have been mounted elsewhere. */
#include "ext.h"

#include "hash.h"
#include "storage.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static PyObject *raise_file(const struct det_err *err)
{
    PyObject *type = err->code == DET_ENOENT   ? PyExc_FileNotFoundError
                     : err->code == DET_EPERM  ? PyExc_PermissionError
                     : err->code == DET_EEXIST ? PyExc_FileExistsError
                     : err->code == DET_EIO    ? PyExc_OSError
                     : err->code == DET_EINVAL ? PyExc_ValueError
                                               : PyExc_RuntimeError;
    PyErr_SetString(type, err->text);
    return NULL;
}

static int open_store(const char *root, const char *id, struct storage **ret, struct det_err *err)
{
    JSON_OWN config = json_make("{s:s, s:s}", "type", "directory", "container_path", root);
    int rc = config ? storage_open_store(config, id, ret, err)
                    : det_fail(err, DET_EINVAL, "checkpoint storage: its path is no UTF-8");
    if (rc == DET_EUNAVAIL)
        storage_note_away(err->text);
    return rc;
}

PyObject *ext_store_ready(PyObject *module, PyObject *args)
{
    const char *root, *id;
    struct det_err err = {0};
    struct storage *s = NULL;
    if (!PyArg_ParseTuple(args, "ss", &root, &id))
        return NULL;
    if (open_store(root, id, &s, &err) < 0)
        return raise_file(&err);
    storage_close(s);
    Py_RETURN_NONE;
}

PyObject *ext_store_note(PyObject *module, PyObject *args)
{
    const char *text;
    if (!PyArg_ParseTuple(args, "s", &text))
        return NULL;
    storage_note_away(text);
    Py_RETURN_NONE;
}

PyObject *ext_store_begin(PyObject *module, PyObject *args)
{
    const char *root, *id, *uuid;
    det_cleanup(freep) char *path = NULL;
    struct det_err err = {0};
    struct storage *s = NULL;
    if (!PyArg_ParseTuple(args, "szs", &root, &id, &uuid))
        return NULL;
    int rc = open_store(root, id, &s, &err);
    if (rc == 0 && (rc = storage_writable(s, &err)) == DET_EUNAVAIL)
        storage_note_away(err.text);
    if (rc == 0)
        rc = storage_begin(s, uuid, &path, &err);
    storage_close(s);
    return rc < 0 ? raise_file(&err) : PyUnicode_DecodeFSDefault(path);
}

typedef int step_fn(struct storage *s, const char *uuid, struct det_err *err);

static PyObject *do_step(PyObject *args, step_fn *step)
{
    const char *root, *id, *uuid;
    struct det_err err = {0};
    struct storage *s = NULL;
    int rc;
    if (!PyArg_ParseTuple(args, "szs", &root, &id, &uuid))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = open_store(root, id, &s, &err);
    if (rc == 0)
        rc = step(s, uuid, &err);
    storage_close(s);
    Py_END_ALLOW_THREADS if (rc < 0) return raise_file(&err);
    Py_RETURN_NONE;
}

PyObject *ext_store_publish(PyObject *module, PyObject *args)
{
    return do_step(args, storage_publish);
}

/* Whoever names one by hand may have mistyped it. */
static int delete_existing(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    return rc < 0 ? rc : storage_delete(s, uuid, err);
}

PyObject *ext_store_delete(PyObject *module, PyObject *args)
{
    return do_step(args, delete_existing);
}

static int hash_path(const char *path, char hex[HASH_HEX_MAX], struct det_err *err)
{
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return det_fail_errno(err, det_code_of_errno(errno), errno, "hash %s", path);
    int rc = hash_fd(HASH_XXH128, fd, hex, err);
    return rc < 0 ? det_wrap(err, rc, "hash %s", path) : 0;
}

PyObject *ext_store_hash(PyObject *module, PyObject *args)
{
    char hex[HASH_HEX_MAX];
    PyObject *name;
    struct det_err err = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &name))
        return NULL;
    const char *path = PyBytes_AsString(name);
    Py_BEGIN_ALLOW_THREADS rc = hash_path(path, hex, &err);
    Py_END_ALLOW_THREADS Py_DECREF(name);
    return rc < 0 ? raise_file(&err) : PyUnicode_FromString(hex);
}

PyObject *ext_store_verify(PyObject *module, PyObject *args)
{
    PyObject *name, *metadata;
    struct det_err err = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "O&O", PyUnicode_FSConverter, &name, &metadata))
        return NULL;
    JSON_OWN m = ext_to_json(metadata);
    if (!m) {
        Py_DECREF(name);
        return NULL;
    }
    const char *dir = PyBytes_AsString(name);
    Py_BEGIN_ALLOW_THREADS rc = storage_verify_dir(dir, m, &err);
    Py_END_ALLOW_THREADS Py_DECREF(name);
    if (rc < 0)
        return raise_file(&err);
    Py_RETURN_NONE;
}
