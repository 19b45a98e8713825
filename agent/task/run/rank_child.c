/* Between vfork and exec only system calls, in the parent's memory. */
#include "rank_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES 65536

static void __attribute__((noreturn)) child_fail(const struct rank_child *c)
{
    int e = errno;
    if (write(c->status_fd, &e, sizeof e) < 0)
        _exit(126);
    _exit(127);
}

/* While root is left: beyond it no user gets any of them. */
static void child_bound_capabilities(void)
{
    for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
        ;
}

/* Not by the C library's functions: those change the user of every thread they know of, and the
 * threads they know of here are the parent's. */
static int child_become_user(const struct taskspec *s)
{
    if (!s->switch_user)
        return 0;
    child_bound_capabilities();
    if (syscall(SYS_setgroups, (size_t)s->groups_n, s->groups) < 0 ||
        syscall(SYS_setresgid, s->gid, s->gid, s->gid) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, s->uid, s->uid, s->uid);
}

/* No way back to more: neither by a program that is set-uid or has capabilities, nor by what root
 * has left to be inherited. An agent's own root keeps what it has: it was told to. */
static void child_drop_privileges(const struct taskspec *s)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    if (s->uid == 0)
        return;
    child_bound_capabilities(); /* those of a user namespace */
    syscall(SYS_capset, &head, none);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Of the uid, in the namespace of users that it is in: so many that no other person's tasks feel
 * it, where no cgroup counts the task's own. Not of an account that the agent itself runs as. */
static void child_limit_processes(const struct rank_child *c)
{
    const struct taskspec *s = c->o->spec;
    struct rlimit now, most = {(rlim_t)s->uid_pids, (rlim_t)s->uid_pids};
    bool is_own = s->switch_user || (c->o->box->spaces & CLONE_NEWUSER);
    if (s->uid_pids <= 0 || !is_own || getrlimit(RLIMIT_NPROC, &now) < 0)
        return;
    if (now.rlim_max >= most.rlim_max)
        setrlimit(RLIMIT_NPROC, &most);
}

static void child_reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int i = 1; i < NSIG; i++)
        if (i != SIGKILL && i != SIGSTOP)
            signal(i, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Libraries open descriptors without CLOEXEC: a connection to the master, inherited by the user's
 * processes, could be read by them and would seem alive after its owner's death. */
static void child_close_others(int first)
{
    if (close_range((unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = first; fd < 4096; fd++) /* kernels before 5.11 */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static bool has_box(const struct rank_child *c)
{
    return taskbox_is_open(c->o->box);
}

/* The descriptor leads through the mounts of outside: getcwd() would find no way up. */
static int child_goto_work(const struct rank_child *c)
{
    return has_box(c) ? chdir(c->work) : fchdir(c->work_fd);
}

/* Whoever is in a box sees no parent, and dies with the box's init if that parent has died. */
static void child_die_with_parent(const struct rank_child *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
    if (getppid() != (has_box(c) ? 0 : c->parent))
        _exit(127);
    /* Whom det-task starts may read its stacks if it hangs. */
    prctl(PR_SET_PTRACER, has_box(c) ? PR_SET_PTRACER_ANY : (unsigned long)c->parent);
}

static void __attribute__((noreturn)) child_run(const struct rank_child *c)
{
    child_reset_signals();
    setpgid(0, 0);
    if (c->cgroup_fd >= 0 && write(c->cgroup_fd, "0", 1) < 0)
        errno = 0; /* without the cgroup the tree is found in other ways */
    child_limit_processes(c);
    if (child_goto_work(c) < 0 || child_become_user(c->o->spec) < 0)
        child_fail(c);
    child_drop_privileges(c->o->spec);
    child_die_with_parent(c);
    umask(022);
    if (dup2(c->null_fd, 0) < 0 || dup2(c->out[0], 1) < 0 || dup2(c->out[1], 2) < 0)
        child_fail(c);
    if (c->o->pass_fd >= 0 && dup2(c->o->pass_fd, 3) < 0)
        child_fail(c);
    child_close_others(c->o->pass_fd >= 0 ? 4 : 3);
    execve(c->o->file, c->o->argv, c->o->env);
    child_fail(c);
}

static int run_in_box(void *arg)
{
    child_run(arg);
}

/* Nobody can go into a namespace of processes, only be born there. */
void rank_child_begin(struct rank_child *c)
{
    _Alignas(16) char stack[STACK_BYTES];
    if (!has_box(c))
        child_run(c);
    if (taskbox_join(c->o->box) < 0)
        child_fail(c);
    c->pid =
        clone(run_in_box, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, c);
    if (c->pid < 0)
        child_fail(c);
    _exit(0);
}
