#include "agentdoctor.h"

#include "apart.h"
#include "cgroup.h"
#include "agentlink.h"
#include "client.h"
#include "clk.h"
#include "counted.h"
#include "find.h"
#include "findings.h"
#include "fsx.h"
#include "identity.h"
#include "mem.h"
#include "slots.h"
#include "storage.h"
#include "tasklimits.h"
#include "taskuids.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MIN = 4096, TOKEN_BYTES_MAX = 4096 };

/* ---- the master ---- */

/* The token's text; NULL when it cannot be used. Caller frees. */
static char *read_token(struct findings *f, const struct agentopts *o)
{
    struct stat st;
    struct det_err err;
    struct buf text = BUF_INIT;
    if (!o->token_file) {
        findings_add(f, FINDING_FAIL, "certificate of its own",
                     "start det-agent once with --join-token and what det agent join-token prints; "
                     "or name the file of the token that all agents share as --token-file",
                     "none in %s, and no --token-file", o->work_dir);
        return NULL;
    }
    if (fsx_read_file(AT_FDCWD, o->token_file, TOKEN_BYTES_MAX, &text, &err) < 0) {
        findings_add(f, FINDING_FAIL, "token file",
                     "copy the file that the master wrote (agent_token_file) to this host", "%s",
                     err.text);
        buf_finish(&text);
        return NULL;
    }
    bool open = stat(o->token_file, &st) == 0 && (st.st_mode & 077);
    findings_add(f, open ? FINDING_WARN : FINDING_OK, "token file", open ? "chmod 600 it" : NULL,
                 "%s%s", o->token_file, open ? " can be read by others" : "");
    char *s = buf_steal(&text);
    s[strcspn(s, " \t\r\n")] = '\0';
    return s;
}

/* Who comes with the agents' token may not ask who it is: 403. Who comes with a wrong one: 401. */
static void master_token(struct findings *f, struct client *c)
{
    struct client_resp r = CLIENT_RESP_INIT;
    det_ignore(client_call(c, &(struct client_req){.path = "/api/v1/me"}, &r, NULL),
               "the status says it");
    bool good = r.status == 403;
    findings_add(f, good ? FINDING_OK : FINDING_FAIL, "token",
                 good ? NULL : "copy the token file of this very master to this host", "%s",
                 good ? "the master knows it" : "the master does not know it");
    client_resp_finish(&r);
}

/* As the agent compares them; sent_us: just before the master was asked for `answer`. */
static void master_clock(struct findings *f, const json_t *answer, int64_t sent_us)
{
    struct link_times t;
    if (link_times_decode(json_object_get(answer, "clock"), &t, NULL) < 0)
        return; /* a master of before */
    struct clockdiff d = clockdiff_of(sent_us, t.got_us, t.answered_us, clk_wall_us());
    bool apart = clockdiff_is_apart(&d, false);
    double s = clockdiff_s(&d);
    findings_add(f, apart ? FINDING_WARN : FINDING_OK, "master's clock",
                 apart ? "synchronise both hosts (chrony, systemd-timesyncd): times of runs "
                         "mislead"
                       : NULL,
                 apart ? "ours is %.1f s %s it" : "as ours, to %.1f s", s < 0 ? -s : s,
                 s < 0 ? "behind" : "ahead of");
}

/* Those that work of now needs; a master of before there were stores names none. */
static void check_stores(struct findings *f, const json_t *answer)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_arr(answer, "stores"), i, s)
    {
        struct storage_seen seen;
        const char *place = json_str(s, "place", "/");
        storage_look(place, json_str(s, "id", NULL), NULL, &seen);
        bool there = seen.sight == STORAGE_PRESENT;
        findings_add(f, there ? FINDING_OK : FINDING_WARN, "checkpoint store",
                     there ? NULL
                           : "mount it at this place; until then no trial that uses it "
                             "starts here",
                     "%s%s%s", place, there ? "" : ": ", seen.text);
    }
}

static void stores_and_clock(struct findings *f, struct client *c)
{
    JSON_OWN answer = NULL;
    int64_t sent_us = clk_wall_us();
    if (client_json(c, "GET", "/agent/v1/stores", NULL, &answer, NULL) < 0)
        return;
    master_clock(f, answer, sent_us);
    check_stores(f, answer);
}

static void own_certificate(struct findings *f, const struct identity *id)
{
    char until[CLK_RFC3339_MAX];
    bool over = cert_state(&id->dates, false, clk_wall_us() / 1000000) == CERT_EXPIRED;
    clk_format(id->dates.until_s * 1000000, until);
    findings_add(f, over ? FINDING_FAIL : FINDING_OK, "certificate of its own",
                 over ? "join anew: det agent join-token, det-agent --join-token" : NULL,
                 "%s until %s", over ? "it was good" : "good", until);
}

static void master_certificate(struct findings *f, struct client *c)
{
    struct det_err err = {0};
    bool good = client_json(c, "GET", "/agent/v1/stores", NULL, NULL, &err) == 0;
    findings_add(f, good ? FINDING_OK : FINDING_FAIL, "certificate of its own",
                 good ? NULL : "do as the master says; an agent that was revoked joins anew", "%s",
                 good ? "the master knows it" : err.text);
}

/* Whether it answers. */
static bool check_master(struct findings *f, const struct agentopts *o, const struct identity *id)
{
    det_cleanup(freep) char *secret = id->cert ? NULL : read_token(f, o);
    if (id->cert)
        own_certificate(f, id);
    struct client_options want = {.url = o->master,
                                  .token_kind = CLIENT_TOKEN_AGENT,
                                  .token = secret,
                                  .ca_file = o->ca_file,
                                  .cert = id->cert,
                                  .key = id->key,
                                  .cert_name = o->cert_name,
                                  .timeout_ms = 5000,
                                  .retries = -1,
                                  .retry_ms = 1};
    det_cleanup(client_destroyp) struct client *c = NULL;
    struct det_err err;
    JSON_OWN info = NULL;
    if (client_create(&want, &c, &err) < 0 ||
        client_json(c, "GET", "/info", NULL, &info, &err) < 0) {
        findings_add(f, FINDING_FAIL, "master",
                     "start det-master, open its port in the firewall, or correct --master; "
                     "det-master listens on 127.0.0.1 until host is set",
                     "%s: %s", o->master, err.text);
        return false;
    }
    findings_add(f, FINDING_OK, "master", NULL, "%s: version %s", o->master,
                 json_str(info, "version", "?"));
    if (secret)
        master_token(f, c);
    if (id->cert)
        master_certificate(f, c);
    if (secret || id->cert)
        stores_and_clock(f, c);
    return true;
}

/* ---- programs ---- */

static void own_programs(struct findings *f)
{
    static const char *const names[] = {"det-task", "det-harness"};
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        det_cleanup(freep) char *there = find_beside(names[i], X_OK);
        findings_add(f, there ? FINDING_OK : FINDING_FAIL, names[i],
                     there ? NULL : "install all of det into one directory", "%s",
                     there ? "beside det-agent" : "not beside det-agent");
    }
}

static void check_compiler(struct findings *f)
{
    const char *wish = getenv("DET_CC");
    det_cleanup(freep) char *cc = find_on_path(getenv("PATH"), wish && *wish ? wish : "cc");
    bool there = cc && access(cc, X_OK) == 0;
    findings_add(f, there ? FINDING_OK : FINDING_WARN, "C compiler",
                 there ? NULL : "for trials in C: apt-get install gcc", "%s", there ? cc : "none");
}

static void check_debugger(struct findings *f)
{
    det_cleanup(freep) char *gdb = find_on_path(getenv("PATH"), "gdb");
    det_cleanup(freep) char *eu = find_on_path(getenv("PATH"), "eu-stack");
    const char *any = gdb ? gdb : eu;
    findings_add(f, any ? FINDING_OK : FINDING_WARN, "stacks of hung tasks",
                 any ? NULL : "apt-get install gdb, or elfutils for eu-stack", "%s",
                 any ? any : "neither gdb nor eu-stack");
}

static void check_python(struct findings *f)
{
    det_cleanup(freep) char *exe = find_python(getenv("PATH"), getenv("DET_PYTHON_EXECUTABLE"));
    bool torch = exe && find_has_torch(exe);
    findings_add(f, torch ? FINDING_OK : FINDING_WARN, "Python with torch",
                 torch ? NULL
                       : "for trials in Python: apt-get install python3-torch, or name a "
                         "python in DET_PYTHON_EXECUTABLE",
                 "%s%s", exe ? exe : "none", exe && !torch ? " has no torch" : "");
}

/* ---- the host ---- */

static void check_slots(struct findings *f, const struct agentopts *o)
{
    struct slots s = {0};
    struct det_err err;
    if (slots_find(o->slots, &s, &err) < 0) {
        findings_add(f, FINDING_FAIL, "slots", "correct --slots: a number, or auto", "%s",
                     err.text);
        return;
    }
    bool node = access("/dev/nvidiactl", F_OK) == 0, gpu = false;
    for (size_t i = 0; i < s.v.n; i++)
        gpu = gpu || (s.v.v[i].type != LINK_CPU);
    bool blind = node && !gpu && strcmp(o->slots, "auto") == 0;
    const char *hidden = getenv("CUDA_VISIBLE_DEVICES");
    findings_add(f, blind ? FINDING_WARN : FINDING_OK, "slots",
                 !blind   ? NULL
                 : hidden ? "unset CUDA_VISIBLE_DEVICES, or name GPUs in it that are here"
                          : "install the driver's libnvidia-ml.so.1 or nvidia-smi",
                 "%zu %s%s", s.v.n, gpu ? "GPU" : "CPU",
                 !blind   ? ""
                 : hidden ? "; there is a GPU, but CUDA_VISIBLE_DEVICES hides it"
                          : "; there is a GPU, but NVML does not see it");
    slots_finish(&s);
}

static bool ended_well(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Of a child. */
static bool become_account(const struct account *who)
{
    const struct passwd *pw = getpwuid((uid_t)who->uid);
    int rc = pw ? initgroups(pw->pw_name, pw->pw_gid) : setgroups(0, NULL);
    return rc == 0 && setgid((gid_t)who->gid) == 0 && setuid((uid_t)who->uid) == 0;
}

/* Whether that account may use the path, past all folders above it: the kernel knows, asked as it.
 */
static bool may_access(const struct account *who, const char *path, int mode)
{
    pid_t pid = fork();
    if (pid == 0) {
        bool may = become_account(who) && access(path, mode) == 0;
        counted_write();
        _exit(!may);
    }
    return pid < 0 || ended_well(pid);
}

/* A child's: det-task's own look, told where the master is as a task is. */
static void exec_look(const struct agentopts *o, const struct account *who, int out)
{
    det_cleanup(freep) char *exe = find_beside("det-task", X_OK);
    if (!exe || dup2(out, STDOUT_FILENO) < 0 || !become_account(who))
        _exit(1);
    unsetenv("DET_MASTERS");
    setenv("DET_MASTER", o->master, 1);
    if (o->ca_file)
        setenv("DET_MASTER_CERT_FILE", o->ca_file, 1);
    if (o->cert_name)
        setenv("DET_MASTER_CERT_NAME", o->cert_name, 1);
    execl(exe, exe, "--reach", (char *)NULL);
    _exit(1);
}

/* False: ret_why says whom it asked, and why that failed. The look itself never gives up. */
static bool gets_answer(const struct agentopts *o, const struct account *who, char *ret_why,
                        size_t why_size)
{
    int out[2];
    *ret_why = '\0';
    if (pipe2(out, O_CLOEXEC) < 0)
        return true; /* what is not known is not told */
    pid_t pid = fork();
    if (pid == 0)
        exec_look(o, who, out[1]);
    close(out[1]);
    ssize_t n = pid < 0 ? 0 : read(out[0], ret_why, why_size - 1);
    close(out[0]);
    if (n > 0)
        kill(pid, SIGKILL);
    ret_why[n > 0 ? n : 0] = '\0';
    ret_why[strcspn(ret_why, "\n")] = '\0';
    return pid < 0 || ended_well(pid);
}

/* A packet filter and a proxy may know accounts, and what this one may read matters too. */
static void task_answer(struct findings *f, const struct agentopts *o, const struct account *who,
                        const char *name)
{
    char why[1024];
    bool good = gets_answer(o, who, why, sizeof why);
    findings_add(f, good ? FINDING_OK : FINDING_FAIL, "master for tasks",
                 good ? NULL
                      : "let that account through to the master (packet filter, routes, proxy), "
                        "as the agent is",
                 "%s %s%s%s", name, good ? "gets its answer" : "gets no answer from it",
                 *why ? ": " : "", why);
}

/* Tasks speak to the master themselves. */
static bool task_certificate(struct findings *f, const struct agentopts *o,
                             const struct account *who, const char *name)
{
    if (!o->ca_file || strcmp(o->ca_file, "noverify") == 0)
        return true;
    bool good = may_access(who, o->ca_file, R_OK);
    findings_add(f, good ? FINDING_OK : FINDING_FAIL, "certificate",
                 good ? NULL : "chmod o+r it and o+x the folders above it, or keep it elsewhere",
                 "%s %s read %s%s", name, good ? "can" : "cannot", o->ca_file,
                 good ? "" : ", and so its tasks cannot speak to the master");
    return good;
}

/* Whether whoever is to run tasks gets to them. answers: the master does, to this process. */
static void task_paths(struct findings *f, const struct agentopts *o, const struct account *who,
                       const char *name, bool answers)
{
    bool passes = access(o->work_dir, X_OK) != 0 || may_access(who, o->work_dir, X_OK);
    findings_add(f, passes ? FINDING_OK : FINDING_FAIL, "task user",
                 passes ? NULL
                        : "chmod o+x the work directory and those above it, or name another "
                          "--work-dir",
                 "%s%s%s%s", name, passes ? "" : " may not pass through ",
                 passes ? "" : o->work_dir, passes ? "" : ", and so run no task");
    if (task_certificate(f, o, who, name) && answers)
        task_answer(f, o, who, name);
}

static void one_task_user(struct findings *f, const struct agentopts *o, bool answers)
{
    const char *name = o->accounts.task_user;
    const struct passwd *pw = *name ? getpwnam(name) : NULL;
    if (pw)
        task_paths(f, o, &(struct account){.uid = pw->pw_uid, .gid = pw->pw_gid}, name, answers);
    else if (*name)
        findings_add(f, FINDING_FAIL, "task user",
                     "useradd --system it, or start without --task-user: each user has a uid then",
                     "%s: no such user on this host", name);
    else
        findings_add(f, FINDING_OK, "task user", NULL, "as the agent");
}

static void kept_apart(struct findings *f, const struct agentopts *o)
{
    struct det_err why = {0};
    char gap[512];
    const struct apart a = {geteuid() == 0, o->accounts.task_user, apart_probe(&why), why.text};
    bool whole = !*apart_gap(&a, gap, sizeof gap);
    findings_add(f, whole ? FINDING_OK : FINDING_WARN, "kept apart",
                 whole                   ? NULL
                 : !a.is_root            ? "start the agent as root, without --task-user"
                 : o->accounts.task_user ? "start without --task-user: each user has a uid then"
                                         : "allow namespaces of processes and mounts to the agent",
                 "%s", whole ? "by uids and namespaces" : gap);
}

static void own_uids(struct findings *f, const struct agentopts *o, bool answers)
{
    struct det_err err = {0};
    struct account first = {.uid = o->accounts.first + 1, .gid = o->accounts.first};
    if (taskuids_check(&o->accounts, &taskuids_of_host, &err) < 0) {
        findings_add(f, FINDING_FAIL, "task uids", "name another range with --task-uids", "%s",
                     err.text);
        return;
    }
    findings_add(f, FINDING_OK, "task uids", NULL, "%s: one for each user", o->task_uids);
    task_paths(f, o, &first, "each as a uid of its own", answers);
}

static void task_user(struct findings *f, const struct agentopts *o, bool answers)
{
    if (geteuid() != 0)
        findings_add(f, FINDING_OK, "task user", NULL, "tasks run as this user: not root");
    else if (o->accounts.task_user)
        one_task_user(f, o, answers);
    else
        own_uids(f, o, answers);
}

static void check_limits(struct findings *f, const struct agentopts *o)
{
    struct tasklimits l;
    struct det_err err;
    char gap[512];
    tasklimits_try(o, apart_probe(NULL) == 0, &l);
    bool works = l.place && l.why.code != DET_EPERM;
    findings_add(f, works ? FINDING_OK : FINDING_WARN, "cgroup v2",
                 works ? NULL
                       : "run the agent as root or with Delegate=yes; without it what hides from a "
                         "task's end is found by its environment",
                 "%s", works ? l.place : l.why.text);
    if (tasklimits_check(&l, &err) < 0)
        findings_add(f, FINDING_FAIL, "limits", "leave --slot-memory-mib out", "%s", err.text);
    else if (*tasklimits_gap(&l, gap, sizeof gap))
        findings_add(f, FINDING_WARN, "limits",
                     "boot with cgroup v2 alone, and start the agent as root", "%s", gap);
    else
        findings_add(f, FINDING_OK, "limits", NULL, "memory, processes and CPU of each task");
    cgroup_remove(l.place);
    tasklimits_finish(&l);
}

/* That of the work directory, if there is any. */
static void own_identity(struct findings *f, struct agentopts *o, struct identity *id)
{
    struct det_err err;
    if (access(o->work_dir, F_OK) < 0)
        return;
    if (identity_open(o->work_dir, id, &err) < 0)
        findings_add(f, FINDING_FAIL, "certificate of its own", NULL, "%s", err.text);
    if (!o->ca_file && id->authority_path && access(id->authority_path, R_OK) == 0)
        o->ca_file = id->authority_path;
}

int agentdoctor_run(const struct agentopts *given)
{
    struct findings f = {0};
    struct agentopts own = *given, *o = &own;
    det_cleanup(identity_finish) struct identity id = {0};
    own_identity(&f, o, &id);
    bool answers = check_master(&f, o, &id);
    findings_dir(&f, "work directory", o->work_dir);
    own_programs(&f);
    check_slots(&f, o);
    task_user(&f, o, answers);
    kept_apart(&f, o);
    check_limits(&f, o);
    check_compiler(&f);
    check_python(&f);
    check_debugger(&f);
    findings_clock(&f);
    findings_files(&f, FILES_MIN);
    return findings_print(&f, "det-agent can work", "det-agent cannot work like this");
}
