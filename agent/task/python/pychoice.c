#include "pychoice.h"

#include "buf.h"
#include "find.h"
#include "fsx.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static const char *const names[] = {"python3", "python"};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "/x/bin/python3" -> "/x/bin". Caller frees. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return det_strndup(path, slash && slash > path ? (size_t)(slash - path) : 1);
}

/* The folder that is a virtual environment by this interpreter in its bin/; NULL: none. */
static char *environment_of(const char *exe)
{
    det_cleanup(freep) char *bin = folder_of(exe);
    det_cleanup(freep) char *folder = folder_of(bin);
    det_cleanup(freep) char *mark = det_asprintf("%s/pyvenv.cfg", folder);
    return is_file(mark) ? det_take(folder) : NULL;
}

static char *interpreter_in(const char *folder)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        det_cleanup(freep) char *exe = det_asprintf("%s/bin/%s", folder, names[i]);
        if (is_file(exe))
            return det_take(exe);
    }
    return NULL;
}

/* Where what was wanted should be. An environment of the model definition's own may be called as a
 * program is: env. Caller frees. */
static char *place_of(const char *wanted, const char *path, const char *work)
{
    if (*wanted == '/')
        return det_strdup(wanted);
    det_cleanup(freep) char *here = det_asprintf("%s/%s", work, wanted);
    det_cleanup(freep) char *exe = interpreter_in(here);
    char *on_path = exe || strchr(wanted, '/') ? NULL : find_on_path(path, wanted);
    return on_path ? on_path : det_take(here);
}

static bool is_denied(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 && errno == EACCES;
}

static bool is_member(gid_t gid)
{
    gid_t of[NGROUPS_MAX];
    int n = getgroups(NGROUPS_MAX, of);
    for (int i = 0; i < n; i++)
        if (of[i] == gid)
            return true;
    return gid == getegid();
}

/* By its mode; what else keeps an account out may pass: a ticket that has expired, say. */
static bool is_closed(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (geteuid() == 0)
        return S_ISREG(st.st_mode) && !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
    if (st.st_uid == geteuid())
        return !(st.st_mode & S_IXUSR);
    return !(st.st_mode & (is_member(st.st_gid) ? S_IXGRP : S_IXOTH));
}

static int fail_denied(const char *wanted, const char *place, struct det_err *err)
{
    det_cleanup(freep) char *folder = find_closed_folder(place);
    return det_fail_errno(err, folder && is_closed(folder) ? DET_EPERM : DET_EIO, EACCES,
                          "%s: this trial runs as the account of uid %d, which may not %s%s; make "
                          "the environment where it may (not below /root or a closed home)",
                          wanted, (int)geteuid(), folder ? "enter " : "follow what it links to",
                          folder ? folder : "");
}

/* That nothing is there, or nothing for this account, is an answer; anything else is none: of a
 * mount that is dead, say. 0: it answers. */
static int trouble_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    if (errno != EACCES)
        return errno;
    det_cleanup(freep) char *folder = find_closed_folder(path);
    return folder && is_closed(folder) ? 0 : EACCES;
}

/* The trouble of any place where `wanted` is looked for. */
static int find_trouble(const char *wanted, const char *place, const char *path)
{
    int error = trouble_at(place);
    for (size_t i = 0; i < DET_ARRAY_LEN(names) && !error; i++) {
        det_cleanup(freep) char *exe = det_asprintf("%s/bin/%s", place, names[i]);
        error = trouble_at(exe);
    }
    const char *p = strchr(wanted, '/') || !path ? "" : path;
    for (size_t n; *p && !error; p += n, p += strspn(p, ":")) {
        n = strcspn(p, ":");
        det_cleanup(freep) char *exe = det_asprintf("%.*s/%s", (int)n, p, wanted);
        error = trouble_at(exe);
    }
    return error;
}

static int fail_folder(const char *wanted, const char *place, struct det_err *err)
{
    char target[PATH_MAX];
    det_cleanup(freep) char *link = det_asprintf("%s/bin/python3", place);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n <= 0)
        return det_fail(err, DET_ENOENT, "%s is a folder without bin/python3", wanted);
    target[n] = '\0';
    return det_fail(
        err, DET_ENOENT,
        "%s: its bin/python3 links to %s, which is not here, or not for uid %d, as whom "
        "this trial runs",
        wanted, target, (int)geteuid());
}

static int fail_missing(const char *wanted, struct det_err *err)
{
    const char *more = "; make it on this host, or name one that is there";
    if (!strchr(wanted, '/'))
        more = ", neither on PATH nor in the model definition; correct the name, or install it on "
               "this host";
    else if (*wanted != '/')
        more = " in the model definition; correct the path, or make it in startup-hook.sh";
    else if (strncmp(wanted, "/tmp/", strlen("/tmp/")) == 0)
        more = ": a trial's /tmp is its own, and what the host's holds is not in it; make it "
               "elsewhere, or in startup-hook.sh";
    return det_fail(err, DET_ENOENT, "there is no %s%s", wanted, more);
}

static int fail_to_run(const char *wanted, const char *exe, int error, struct det_err *err)
{
    return det_fail_errno(err, error == EACCES && is_closed(exe) ? DET_EPERM : DET_EIO, error,
                          "%s cannot be run by uid %d, as whom this trial runs; chmod a+x it, "
                          "or name another",
                          wanted, (int)geteuid());
}

int pychoice_find(const char *wanted, const char *path, const char *work, struct pychoice *ret,
                  struct det_err *err)
{
    det_cleanup(freep) char *place = place_of(wanted, path, work);
    *ret = PYCHOICE_NONE;
    if (is_denied(place)) /* access() would ask for who started this process */
        return fail_denied(wanted, place, err);
    det_cleanup(freep) char *exe = is_folder(place) ? interpreter_in(place) : det_strdup(place);
    int error = exe && is_file(exe) ? 0 : find_trouble(wanted, place, path);
    if (error)
        return det_fail_errno(err, DET_EIO, error, "%s", wanted);
    if (!exe)
        return fail_folder(wanted, place, err);
    if (!is_file(exe))
        return fail_missing(wanted, err);
    if (faccessat(AT_FDCWD, exe, X_OK, AT_EACCESS) < 0)
        return fail_to_run(wanted, exe, errno, err);
    ret->folder = environment_of(exe);
    ret->exe = det_take(exe);
    return 0;
}

void pychoice_finish(struct pychoice *c)
{
    free(c->exe);
    free(c->folder);
    *c = PYCHOICE_NONE;
}

/* ---- what is told of it ---- */

static const char *path_of(const json_t *env)
{
    return json_str(env, "PATH", DEFAULT_PATH);
}

static bool is_on(const char *path, const char *folder)
{
    size_t want = strlen(folder);
    for (const char *p = path; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        if (n == want && memcmp(p, folder, n) == 0)
            return true;
        p += n;
    }
    return false;
}

static void set_variable(json_t *env, const char *name, const char *value)
{
    json_set(env, name, json_lossy(value, strlen(value)));
}

void pychoice_put_first(json_t *env, const char *folder)
{
    det_cleanup(freep) char *path = det_asprintf("%s:%s", folder, path_of(env));
    set_variable(env, "PATH", path);
}

/* A folder of the system's, that is on PATH already, would come before others of the user's. */
void pychoice_apply(const struct pychoice *c, json_t *env)
{
    det_cleanup(freep) char *bin = folder_of(c->exe);
    if (c->folder || !is_on(path_of(env), bin))
        pychoice_put_first(env, bin);
    if (c->folder)
        set_variable(env, "VIRTUAL_ENV", c->folder);
    json_object_del(env, "PYTHONHOME");
    set_variable(env, "DET_PYTHON_EXECUTABLE", c->exe);
}

/* Side by side: links from elsewhere, as a virtual environment's, make another Python of a file. */
static bool is_same(const char *a, const char *b)
{
    struct stat sa, sb;
    det_cleanup(freep) char *folder_a = folder_of(a);
    det_cleanup(freep) char *folder_b = folder_of(b);
    return strcmp(folder_a, folder_b) == 0 && stat(a, &sa) == 0 && stat(b, &sb) == 0 &&
           sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

bool pychoice_lacks_names(const struct pychoice *c, const json_t *env)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        det_cleanup(freep) char *found = find_on_path(path_of(env), names[i]);
        if (!found || !is_same(found, c->exe))
            return true;
    }
    return false;
}

/* By a link, an interpreter could not tell where it is from, nor a shim what it is called. */
static void add_script(struct buf *out, const char *exe, const char *words)
{
    buf_add_str(out, "#!/bin/sh\nexec '");
    for (const char *p = exe; *p; p++)
        if (*p == '\'')
            buf_add_str(out, "'\\''");
        else
            buf_add_ch(out, *p);
    buf_addf(out, "'%s \"$@\"\n", words);
}

static int write_file(int dirfd, const char *folder, const char *name, const struct buf *text,
                      struct det_err *err)
{
    det_cleanup(freep) char *file = det_asprintf("%s/%s", folder, name);
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(dirfd, file, O_WRONLY | O_CREAT | O_TRUNC, 0755, err);
    return fd < 0 ? fd : fsx_write_all(fd, text->p, text->len, err);
}

int pychoice_write_names(const struct pychoice *c, int dirfd, const char *name, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    add_script(&text, c->exe, "");
    int rc = fsx_mkdirs(dirfd, name, 0755, err);
    for (size_t i = 0; i < DET_ARRAY_LEN(names) && rc == 0; i++)
        rc = write_file(dirfd, name, names[i], &text, err);
    return rc;
}

/* ---- a layer over a Python that is not to be installed into ---- */

bool pychoice_is_managed(const char *exe)
{
    char real[PATH_MAX];
    det_cleanup(freep) char *environment = environment_of(exe); /* a link: pip installs into that */
    if (environment || !realpath(exe, real))
        return false;
    det_cleanup(freep) char *bin = folder_of(real);
    det_cleanup(freep) char *top = folder_of(bin);
    det_cleanup(freep) char *mark =
        det_asprintf("%s/lib%s/EXTERNALLY-MANAGED", top, strrchr(real, '/'));
    return is_file(mark);
}

static int link_names(const char *exe, int dirfd, const char *bin, struct det_err *err)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        det_cleanup(freep) char *at = det_asprintf("%s/%s", bin, names[i]);
        if (symlinkat(exe, dirfd, at) < 0 && errno != EEXIST)
            return det_fail_errno(err, DET_EIO, errno, "%s", at);
    }
    return 0;
}

int pychoice_write_layer(const char *exe, int dirfd, const char *name, const char *path,
                         struct det_err *err)
{
    static const char *const installers[] = {"pip", "pip3"};
    det_cleanup(freep) char *bin = det_asprintf("%s/bin", name);
    det_cleanup(freep) char *home = folder_of(exe);
    det_cleanup(freep) char *own = det_asprintf("%s/%s/bin/python3", path, name);
    det_cleanup(buf_finish) struct buf cfg = BUF_INIT, pip = BUF_INIT;
    buf_addf(&cfg, "home = %s\ninclude-system-site-packages = true\n", home);
    add_script(&pip, own, " -m pip");
    int rc = fsx_mkdirs(dirfd, bin, 0755, err);
    if (rc == 0)
        rc = write_file(dirfd, name, "pyvenv.cfg", &cfg, err);
    if (rc == 0)
        rc = link_names(exe, dirfd, bin, err);
    for (size_t i = 0; i < DET_ARRAY_LEN(installers) && rc == 0; i++)
        rc = write_file(dirfd, bin, installers[i], &pip, err);
    return rc;
}

/* ---- the hook's ---- */

static bool texts_differ(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") != 0;
}

char *pychoice_of_hook(const json_t *before, const json_t *after)
{
    const char *name = json_str(after, "DET_PYTHON_EXECUTABLE", NULL);
    if (texts_differ(json_str(before, "DET_PYTHON_EXECUTABLE", NULL), name))
        return name && *name ? det_strdup(name) : NULL;
    det_cleanup(freep) char *was = find_on_path(path_of(before), names[0]);
    det_cleanup(freep) char *is = find_on_path(path_of(after), names[0]);
    return is && texts_differ(was, is) ? det_take(is) : NULL;
}
