#include "model_cc.h"

#include "det/trial.h"
#include "find.h"
#include "fsx.h"
#include "mem.h"
#include "model.h"
#include "progress.h"
#include "vec.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const flags[] = {"-std=gnu17", "-D_GNU_SOURCE", "-O2",
                                    "-g1",        "-fPIC",         "-shared"};

/* The include folder beside that of `file`, or one above (lib/<machine>). */
static char *headers_beside(const char *file)
{
    char whole[PATH_MAX];
    if (!file || !realpath(file, whole))
        return NULL;
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(whole, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
        det_cleanup(freep) char *dir = det_asprintf("%s/include", whole);
        det_cleanup(freep) char *header = det_asprintf("%s/det/trial.h", dir);
        if (access(header, R_OK) == 0)
            return det_take(dir);
    }
    return NULL;
}

char *model_include_dirs(struct det_err *err)
{
    const char *env = getenv("DET_INCLUDE_DIR");
    Dl_info self; /* of libdet.so, where this is a part of it */
    det_cleanup(freep) char *program = find_self();
    char *dir = env && *env ? det_strdup(env) : headers_beside(program);
    if (!dir && dladdr((void *)(uintptr_t)model_include_dirs, &self))
        dir = headers_beside(self.dli_fname);
    if (!dir)
        det_fail(err, DET_ENOENT,
                 "the headers of the trial API (det/trial.h) are not in ../include beside "
                 "det-harness: install them, or set DET_INCLUDE_DIR");
    return dir;
}

/* Another host may have a compiler that starts. */
static void tell_task(const struct det_err *err)
{
    const char *dir = getenv("DET_RUN_DIR");
    det_cleanup(freep) char *path = dir ? det_asprintf("%s/" PROGRESS_HOST_FAILED_FILE, dir) : NULL;
    if (path)
        det_ignore(fsx_write_atomic(AT_FDCWD, path, err->text, strlen(err->text), 0644, NULL),
                   "the rank's log has the words too");
}

static char *find_compiler(struct det_err *err)
{
    const char *wish = getenv("DET_CC");
    char *compiler = find_on_path(getenv("PATH"), wish ? wish : "cc");
    if (compiler)
        return compiler;
    det_fail(err, DET_ENOENT,
             "no C compiler: a trial in C needs %s on PATH on this host (apt-get install gcc "
             "libc6-dev)",
             wish ? wish : "cc");
    tell_task(err);
    return NULL;
}

int model_cc_init(struct model_cc *cc, bool quiet, struct det_err *err)
{
    *cc = (struct model_cc){.text = -1, .quiet = quiet};
    cc->include = model_include_dirs(err);
    cc->path = cc->include ? find_compiler(err) : NULL;
    if (cc->path)
        return 0;
    model_cc_finish(cc);
    return DET_ENOENT;
}

void model_cc_finish(struct model_cc *cc)
{
    free(cc->path);
    free(cc->include);
    det_closep(&cc->text);
    *cc = (struct model_cc){.text = -1};
}

/* ---- its arguments ---- */

typedef VEC(char *) args_vec;

static void args_finish(args_vec *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i]);
    vec_free(a);
}

static void add_args(args_vec *a, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vec_push(a, v[i] ? det_strdup(v[i]) : NULL);
}

/* The compiler, its flags and where it looks for headers: what both steps have. */
static void add_common(args_vec *a, const struct model_cc *cc)
{
    add_args(a, (const char *const[]){cc->path}, 1);
    add_args(a, flags, DET_ARRAY_LEN(flags));
    for (const char *p = cc->include; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        vec_push(a, det_asprintf("-I%.*s", (int)n, p));
        p += n;
    }
    add_args(a, (const char *const[]){"-I."}, 1);
}

/* ---- its runs ---- */

static int wait_for(pid_t pid, const char *compiler, const char *c_path, struct det_err *err)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return det_fail_errno(err, DET_EIO, errno, "wait for %s", compiler);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        return det_fail(err, DET_EIO, "%s was ended by signal %d while it compiled %s", compiler,
                        WTERMSIG(status), c_path);
    return det_fail(err, DET_EINVAL, "%s does not compile; the messages of %s are above", c_path,
                    compiler);
}

/* `text` becomes the compiler's descriptor `as`. */
static int run_compiler(const struct model_cc *cc, const args_vec *a, int as, const char *c_path,
                        struct det_err *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, cc->text, as);
    if (cc->quiet)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawn(&pid, a->v[0], &actions, NULL, a->v, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        det_fail_errno(err, DET_EIO, rc, "start %s", a->v[0]);
        tell_task(err);
        return DET_EIO;
    }
    return wait_for(pid, a->v[0], c_path, err);
}

/* -dD keeps the macros. Without -g0 the text would begin with the working directory, which is
 * another one in every task. */
static int preprocess_source(const struct model_cc *cc, const char *c_path, struct det_err *err)
{
    det_cleanup(args_finish) args_vec a = {0};
    add_common(&a, cc);
    add_args(&a, (const char *const[]){"-g0", "-E", "-dD", c_path, NULL}, 5);
    return run_compiler(cc, &a, STDOUT_FILENO, c_path, err);
}

int model_cc_make(struct model_cc *cc, const char *c_path, const char *out, struct det_err *err)
{
    det_cleanup(args_finish) args_vec a = {0};
    if (lseek(cc->text, 0, SEEK_SET) < 0)
        return det_fail_errno(err, DET_EIO, errno, "%s, preprocessed", c_path);
    add_common(&a, cc);
    add_args(&a,
             (const char *const[]){"-o", out, "-x", "cpp-output", "-", "-x", "none", "-lm", NULL},
             9);
    return run_compiler(cc, &a, STDIN_FILENO, c_path, err);
}

/* ---- the key ---- */

static void add_text(struct hash *h, const char *s)
{
    hash_add(h, s, strlen(s) + 1);
}

/* Its file too: the assembler and the linker that come with it have no macro. */
static int add_compiler(struct hash *h, const struct model_cc *cc, struct det_err *err)
{
    struct stat st;
    if (stat(cc->path, &st) < 0)
        return det_fail_errno(err, DET_EIO, errno, "compiler %s", cc->path);
    const int64_t facts[] = {DET_API_VERSION, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                             (int64_t)st.st_ino};
    det_cleanup(args_finish) args_vec a = {0};
    add_common(&a, cc);
    for (size_t i = 0; i < a.n; i++)
        add_text(h, a.v[i]);
    hash_add(h, facts, sizeof facts);
    return 0;
}

int model_cc_read(struct model_cc *cc, const char *c_path, char key[HASH_HEX_MAX],
                  struct det_err *err)
{
    char text[HASH_HEX_MAX];
    cc->text = memfd_create("preprocessed", MFD_CLOEXEC);
    if (cc->text < 0)
        return det_fail_errno(err, DET_EIO, errno, "memory for %s, preprocessed", c_path);
    int rc = preprocess_source(cc, c_path, err);
    if (rc == 0 && lseek(cc->text, 0, SEEK_SET) < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "%s, preprocessed", c_path);
    if (rc < 0 || (rc = hash_fd(HASH_SHA256, cc->text, text, err)) < 0)
        return rc;
    struct hash *h = hash_create(HASH_SHA256);
    add_text(h, text);
    rc = add_compiler(h, cc, err);
    hash_end(h, key);
    return rc;
}
