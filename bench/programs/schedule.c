/*
 * The scheduler at size: 5,000 agents of 8 slots, 100,000 queued trials, with the master's real
 * core and no I/O. Times are of the processor. Prints one JSON object a line.
 *
 * placements_per_s  an empty cluster: the step that makes 40,000 placements, with containers,
 *                   orders to agents, rows and log lines; the slowest of fair share, priority,
 *                   in first out and round robin, of 1,000 experiments of 100 trials each and of
 *                   100,000 of one
 * decisions_per_s   of such a step the pass alone, the slowest: who starts where
 * pass_ms           the full cluster, 60,000 still queued: the step in which one trial ends and the
 *                   next is placed; the slowest of the four, each the median of 200
 * pass_single_ms    the same with 100,000 experiments of one trial each
 * bytes_per_trial   memory of the core for one queued trial
 */
#include "agent.h"
#include "core.h"
#include "pool.h"
#include "scheduler.h"
#include <malloc.h>
#include <stdio.h>
#include <time.h>

enum { AGENTS = 5000, SLOTS = 8, QUEUED = 100000, ENDS = 200 };

static const char config_text[] =
    "{\"name\":\"bench\",\"entrypoint\":\"model_def:T\",\"max_restarts\":5,"
    "\"hyperparameters\":{\"lr\":{\"type\":\"double\",\"minval\":0.1,\"maxval\":0.2}},"
    "\"reproducibility\":{\"experiment_seed\":1},"
    "\"resources\":{\"slots_per_trial\":1,\"resource_pool\":\"\",\"weight\":1},"
    "\"searcher\":{\"name\":\"random\",\"metric\":\"loss\",\"max_trials\":%d,"
    "\"max_concurrent_trials\":0,\"max_length\":{\"batches\":100}}}";

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void step(struct core *c, struct core_event ev)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    ev.now_ms = 1000;
    core_step(c, &ev, &fx);
    core_effects_finish(&fx);
}

static void queue_up(struct core *c, int trials)
{
    char text[sizeof config_text + 16];
    snprintf(text, sizeof text, config_text, trials);
    json_t *config = json_loads(text, 0, NULL);
    for (int i = 0; i < QUEUED / trials; i++) {
        struct core_event ev = {.kind = CORE_EV_EXP_CREATE, .more = true};
        ev.create = (struct core_create){
            .job_id = "00000000-0000-4000-8000-000000000000", .config = config, .activate = true};
        step(c, ev);
    }
    while (core_deadline_ms(c) <= 1000)
        step(c, (struct core_event){.kind = CORE_EV_TICK});
    json_decref(config);
}

/* All at once: no pass in between. */
static void add_agents(struct core *c)
{
    struct core_slot_in slots[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        slots[i] = (struct core_slot_in){.id = i, .type = CORE_CUDA, .brand = "", .uuid = ""};
    for (int i = 0; i < AGENTS; i++) {
        char id[16];
        snprintf(id, sizeof id, "node%04d", i);
        struct core_hello h = {
            .version = "0", .pool = "", .addr = id, .slots = slots, .slots_n = SLOTS};
        agent_update(c, agent_get(c, id), &h);
    }
}

static size_t decide(struct core *c, double *ret_s)
{
    struct sched s;
    struct pool *pool = c->pools.v[0];
    double from = seconds();
    sched_decide(&s, c, pool);
    *ret_s = seconds() - from;
    size_t n = s.starts.n;
    fit_undo(&pool->fit, 0);
    sched_finish(&s);
    return n;
}

static struct alloc *first_placed(const struct core *c)
{
    for (size_t i = 0; i < c->allocs.n; i++)
        if (c->allocs.v[i]->state != ALLOC_PENDING)
            return c->allocs.v[i];
    return NULL;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* A trial is done and its container ends: its slot goes to the next. */
static double end_one(struct core *c)
{
    double took[ENDS];
    for (int i = 0; i < ENDS; i++) {
        struct alloc *a = first_placed(c);
        char alloc[128], container[UUID_STR_MAX], agent[32];
        snprintf(alloc, sizeof alloc, "%s", a->id);
        snprintf(container, sizeof container, "%s", a->containers.v[0]->id);
        snprintf(agent, sizeof agent, "%s", a->containers.v[0]->agent_id);
        struct core_event ev = {.kind = CORE_EV_AGENT_EXIT, .agent_id = agent};
        ev.task = (struct core_task_in){
            .alloc = alloc, .container = container, .state = CORE_TASK_ENDED, .exit.rank = -1};
        double from = seconds();
        step(c, ev);
        took[i] = (seconds() - from) * 1000;
    }
    qsort(took, ENDS, sizeof *took, by_size);
    return took[ENDS / 2];
}

static void print(const char *figure, double value, const char *unit)
{
    printf("{\"bench\": \"schedule\", \"figure\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"}\n",
           figure, value, unit);
}

struct result {
    double place_s, decide_s; /* of the placements: the step, the pass alone */
    double pass_ms, bytes;
};

static struct result run(enum core_scheduler scheduler, const char *name, int trials)
{
    struct core_options o = core_options_default;
    struct result r;
    double s;
    o.scheduler = scheduler;
    o.preemption = true;
    o.launch_error = false;
    struct core *c = core_create(&o);
    size_t before = mallinfo2().uordblks;
    queue_up(c, trials);
    size_t queued = c->pools.v[0]->pending_n;
    r.bytes = (double)(mallinfo2().uordblks - before) / (double)queued;
    add_agents(c);
    size_t n = decide(c, &s), again = decide(c, &r.decide_s);
    if (n != again || n != AGENTS * SLOTS)
        fprintf(stderr, "wrong: %zu placements, then %zu\n", n, again);
    double from = seconds();
    step(c, (struct core_event){.kind = CORE_EV_TICK});
    r.place_s = seconds() - from;
    r.pass_ms = end_one(c);
    fprintf(stderr,
            "%-12s %3d trials each: %zu placements in %.0f ms, decided in %.0f; a step in the full "
            "cluster %.3f ms; %.0f bytes a trial\n",
            name, trials, n, r.place_s * 1e3, r.decide_s * 1e3, r.pass_ms, r.bytes);
    core_destroy(c);
    return r;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int main(void)
{
    static const char *const names[] = {"fair_share", "priority", "fifo", "round_robin"};
    struct result worst = {0}, many, single;
    double pass_single = 0;
    for (int i = CORE_FAIR_SHARE; i <= CORE_ROUND_ROBIN; i++) {
        many = run((enum core_scheduler)i, names[i], 100);
        single = run((enum core_scheduler)i, names[i], 1);
        worst.place_s = larger(worst.place_s, larger(many.place_s, single.place_s));
        worst.decide_s = larger(worst.decide_s, larger(many.decide_s, single.decide_s));
        worst.pass_ms = larger(worst.pass_ms, many.pass_ms);
        worst.bytes = larger(worst.bytes, many.bytes);
        pass_single = larger(pass_single, single.pass_ms);
    }
    print("placements_per_s", AGENTS * SLOTS / worst.place_s, "placements/s");
    print("decisions_per_s", AGENTS * SLOTS / worst.decide_s, "placements/s");
    print("bytes_per_trial", worst.bytes, "bytes");
    print("pass_ms", worst.pass_ms, "ms");
    print("pass_single_ms", pass_single, "ms");
    return 0;
}
