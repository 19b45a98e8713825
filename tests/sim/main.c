/* sim --seed S --events N [--seeds COUNT] ...: each seed in a process of its own, twice where
 * asked: the second time the wall clock jumps, and the trace must be the same. */
#include "clk.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct args {
    struct sim_options one;
    int64_t seeds, twice; /* every which seed is run twice */
    bool quiet, edges;
};

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed S] [--events N] [--seeds COUNT] [--agents A] [--slots K] "
                    "[--trials T] [--twice EVERY] [--jumps] [--quiet] [--edges] [--trace]\n");
    return 2;
}

static bool parse_number(const char *name, const char *value, struct args *a)
{
    char *end;
    long long v = value ? strtoll(value, &end, 10) : 0;
    if (!value || *end || v < 0)
        return false;
    if (strcmp(name, "--seed") == 0)
        a->one.seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--events") == 0)
        a->one.events = v;
    else if (strcmp(name, "--seeds") == 0)
        a->seeds = v;
    else if (strcmp(name, "--agents") == 0 && v <= 100000)
        a->one.agents = (int)v;
    else if (strcmp(name, "--slots") == 0 && v <= 1000)
        a->one.slots = (int)v;
    else if (strcmp(name, "--trials") == 0 && v <= 1000000)
        a->one.trials = (int)v;
    else if (strcmp(name, "--twice") == 0)
        a->twice = v;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, struct args *a)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            a->one.trace = a->one.trace_all = true;
        else if (strcmp(argv[i], "--jumps") == 0)
            a->one.jumps = true;
        else if (strcmp(argv[i], "--edges") == 0)
            a->edges = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            a->quiet = true;
        else if (parse_number(argv[i], argv[i + 1], a))
            i++;
        else
            return false;
    }
    return true;
}

/* Run in a child: a broken invariant ends only it. */
static bool run_apart(const struct sim_options *o, struct sim_result *ret)
{
    int fd[2], status = 0;
    if (pipe(fd) < 0)
        return false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sim_run(o, ret);
        exit(write(fd[1], ret, sizeof *ret) == sizeof *ret ? 0 : 2); /* not _exit: leaks are
                                                                      * found */
    }
    close(fd[1]);
    bool whole = pid > 0 && read(fd[0], ret, sizeof *ret) == sizeof *ret;
    close(fd[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return whole && status == 0;
}

static void show(const char *what, const struct sim_result *r)
{
    printf("%s: %lld events, %lld experiments, %lld trials, %lld runs, %lld crashes, %lld "
           "takeovers, %lld other faults, %lld refused writes, %lld parked (%lld doubted), "
           "%lld batches not written, "
           "%lld batches sent again, %lld requests put off, %lld virtual h; trace %016llx\n",
           what, (long long)r->events, (long long)r->exps, (long long)r->trials, (long long)r->runs,
           (long long)r->crashes, (long long)r->takeovers, (long long)r->faults,
           (long long)r->refused, (long long)r->parked, (long long)r->doubted,
           (long long)r->unwritable, (long long)r->again, (long long)r->unavailable,
           (long long)r->hours, (unsigned long long)r->trace);
}

static void add(struct sim_result *all, const struct sim_result *r)
{
    all->events += r->events;
    all->exps += r->exps;
    all->trials += r->trials;
    all->runs += r->runs;
    all->crashes += r->crashes;
    all->faults += r->faults;
    all->takeovers += r->takeovers;
    all->hours += r->hours;
    all->refused += r->refused;
    all->parked += r->parked;
    all->doubted += r->doubted;
    all->unwritable += r->unwritable;
    all->again += r->again;
    all->unavailable += r->unavailable;
    all->calm_ms = r->calm_ms > all->calm_ms ? r->calm_ms : all->calm_ms;
    all->trace ^= r->trace;
    moves_add(all, r);
}

/* Once more with the trace, for people. */
static int explain(const struct sim_options *o)
{
    struct sim_options again = *o;
    struct sim_result r = {0};
    again.trace = true;
    bool passed = !o->trace && run_apart(&again, &r);
    fprintf(stderr,
            "sim: seed %llu failed%s; run it again with --seed %llu --events %lld --trace\n",
            (unsigned long long)o->seed, passed ? ", and then passed: it is not deterministic" : "",
            (unsigned long long)o->seed, (long long)o->events);
    return 1;
}

static int run_seed(const struct args *a, const struct sim_options *o, bool twice,
                    struct sim_result *all)
{
    struct sim_result r = {0}, again = {0};
    struct sim_options jumping = *o;
    if (!run_apart(o, &r))
        return explain(o);
    jumping.jumps = true;
    if (twice && !run_apart(&jumping, &again))
        return explain(&jumping);
    if (twice && again.trace != r.trace) {
        fprintf(stderr, "sim: I10: seed %llu: the trace is %016llx, %016llx when the clock jumps\n",
                (unsigned long long)o->seed, (unsigned long long)r.trace,
                (unsigned long long)again.trace);
        return 1;
    }
    char what[40];
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)o->seed);
    if (!a->quiet)
        show(what, &r);
    add(all, &r);
    all->events += again.events;
    return 0;
}

int main(int argc, char **argv)
{
    struct args a = {.one = {.seed = (uint64_t)clk_wall_us(), .events = 200000}, .seeds = 1};
    struct sim_result all = {0};
    if (!parse(argc, argv, &a))
        return usage();
    for (int64_t i = 0; i < a.seeds; i++) {
        struct sim_options o = a.one;
        o.seed += (uint64_t)i;
        if (run_seed(&a, &o, a.twice && i % a.twice == 0, &all) != 0)
            return 1;
    }
    if (a.seeds > 1) {
        char what[60];
        snprintf(what, sizeof what, "%lld seeds (calm within %lld s)", (long long)a.seeds,
                 (long long)(all.calm_ms / 1000));
        show(what, &all);
    }
    return a.edges && moves_missing(&all, a.seeds) > 0;
}
