/* A module's state in a file of its own. */
#include "det/weights.h"

#include "fsx.h"
#include "mem.h"
#include "trial_state_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

DET_DEFINE_CLEANUP(struct pth_doc *, pth_doc_destroy)

/* The state_dict in what a file holds. */
static const struct pth_value *find_state(const struct pth_value *root, int model,
                                          struct det_err *err)
{
    const struct pth_value *models = pth_get(root, "models_state_dict");
    const struct pth_value *inner = pth_get(root, "state_dict");
    if (!inner)
        inner = pth_get(root, "model");
    if (!models)
        return pth_kind(inner) == PTH_DICT ? inner : root;
    if (model >= 0 && (size_t)model < pth_len(models))
        return pth_at(models, (size_t)model);
    det_fail(err, DET_EINVAL, "it has %zu models, number %d is asked for", pth_len(models), model);
    return NULL;
}

static char *file_of(const char *path)
{
    struct stat st;
    bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return dir ? det_asprintf("%s/state_dict.pth", path) : det_strdup(path);
}

int det_module_load_file_of(struct det_module *m, const char *path,
                            const struct det_weights_options *options, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    det_cleanup(freep) char *file = file_of(path);
    const struct pth_value *root = NULL, *state;
    if (!m)
        return det_fail(err, DET_EINVAL, "load %s: the module is NULL", path);
    int rc = pth_load(file, doc, &root, err);
    if (rc < 0)
        return rc;
    state = find_state(root, options->model, err);
    rc = state ? state_to_model(state, m, options, err) : DET_EINVAL;
    return rc < 0 ? det_wrap(err, rc, "load %s", file) : 0;
}

static int sync_file(const char *path, struct det_err *err)
{
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return det_fail_errno(err, DET_EIO, errno, "sync %s", path);
    return 0;
}

int det_module_save_file(struct det_module *m, const char *path, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    det_cleanup(freep) char *part = det_asprintf("%s.part", path);
    struct state_writer w = {.doc = doc, .err = err};
    if (!m)
        return det_fail(err, DET_EINVAL, "save %s: the module is NULL", path);
    const struct pth_value *state = state_of_model(&w, m);
    int rc = state ? pth_save(part, state, err) : DET_ENOMEM;
    if (rc == 0)
        rc = sync_file(part, err);
    if (rc == 0 && rename(part, path) < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "rename %s", part);
    if (rc < 0)
        unlink(part);
    return rc < 0 ? det_wrap(err, rc, "save %s", path) : 0;
}
