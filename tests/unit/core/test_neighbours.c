/* Which slots of a host are given together: cases, all that random hosts of 8 slots could give, and
 * what comes of it through hello, placing, a restart and the next hello. */
#include "world.h"

#include <stdio.h>

#include "neighbours.h"
#include "rng.h"

/* A letter for each slot: its island and its node, '-' for none; what is free, and who is taken. */
static const struct picking {
    const char *name, *islands, *nodes, *free, *taken;
} cases[] = {
    {"slots without any: the lowest", "--------", "--------", "ffff.fff", "xx......"},
    {"one island first, though its numbers lie apart", "abab", "----", "ffff", "x.x."},
    {"one node without islands", "--------", "01010101", "ffffffff", "x.x.x.x."},
    {"an island before a node", "-aa-", "0011", "ffff", ".xx."},
    {"the island of which just enough is free", "aaaabb", "------", "ffffff", "....xx"},
    {"also where it is because others have the rest", "aaaabbbb", "--------", "fffff.f.",
     "....x.x."},
    {"one slot of none before one of an island", "aa-", "---", "fff", "..x"},
    {"one slot of the fullest node", "------", "000111", "fffff.", "...x.."},
    {"of equal islands the lowest", "aabbcc", "001122", "ffffff", "xx...."},
    {"but first that of the fullest node", "aab-cc", "000022", "ffffff", "....xx"},
    {"inside an island one node", "aaaaaaaa", "00011111", "ffffffff", "xxx....."},
    {"inside an island over nodes: one of them whole", "aaaaaa", "001111", "ffffff", "x.xxxx"},
    {"over islands: the largest whole, the rest fits", "aaabbcdd", "--------", "ffffffff",
     "xxx..x.."},
    {"over as few nodes as can be", "------", "000112", "ffffff", "xxxxx."},
    {"over as few nodes as can be, one taken", "--------", "-0112233", ".fffffff", "..xxxx.."},
    {"over islands of one node", "abbacdef", "00001111", "ffffffff", "xx.x...."},
    {"all of them", "ab-a", "0-10", "ffff", "xxxx"},
};

static int number(char c)
{
    return c == '-' ? -1 : c;
}

static size_t count(const char *s, char c)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == c;
    return n;
}

static void pick(const char *islands, const char *nodes, const char *free, size_t k, char *ret)
{
    struct neighbour v[8];
    bool taken[8] = {false};
    size_t n = 0, all = strlen(free);
    for (size_t i = all; i-- > 0;) /* in another order than theirs */
        if (free[i] == 'f')
            v[n++] = (struct neighbour){
                .slot = (int)i, .island = number(islands[i]), .numa = number(nodes[i])};
    neighbours_pick(v, n, k, taken);
    for (size_t i = 0; i < all; i++)
        ret[i] = taken[i] ? 'x' : '.';
    ret[all] = '\0';
}

static void neighbours_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        const struct picking *p = &cases[i];
        char got[9];
        pick(p->islands, p->nodes, p->free, count(p->taken, 'x'), got);
        if (strcmp(got, p->taken) != 0)
            fail_msg("%s: %s of %s, %s, %s is taken, not %s", p->name, got, p->islands, p->nodes,
                     p->free, p->taken);
    }
}

/* How many free slots the group has that all of the mask are of; 0: they are not of one. */
static int group_size(const char *groups, const char *free, unsigned mask)
{
    int n = 0, first = __builtin_ctz(mask);
    if (groups[first] == '-')
        return mask == 1u << first;
    for (int i = 0; i < 8; i++) {
        if (mask >> i & 1 && groups[i] != groups[first])
            return 0;
        n += free[i] == 'f' && groups[i] == groups[first];
    }
    return n;
}

/* Lower is better: one island, then one node, and of these the smallest. */
static int cost(const char *islands, const char *nodes, const char *free, unsigned mask)
{
    int island = group_size(islands, free, mask), node = group_size(nodes, free, mask);
    return island ? island : node ? 10 + node : 20;
}

static void nothing_better_could_be_taken(void **state)
{
    (void)state;
    struct mt19937 r;
    mt19937_seed(&r, 7);
    for (int turn = 0; turn < 3000; turn++) {
        char islands[9] = "", nodes[9] = "", free[9] = "", got[9];
        unsigned all = 0, taken = 0;
        for (int i = 0; i < 8; i++) {
            islands[i] = "aabbc-"[mt19937_bounded(&r, 5)];
            nodes[i] = "001-"[mt19937_bounded(&r, 3)];
            free[i] = mt19937_bounded(&r, 3) ? 'f' : '.';
            all |= (free[i] == 'f') * 1u << i;
        }
        if (!all)
            continue;
        int k = 1 + (int)mt19937_bounded(&r, (uint64_t)__builtin_popcount(all) - 1);
        pick(islands, nodes, free, (size_t)k, got);
        for (int i = 0; i < 8; i++)
            taken |= (got[i] == 'x') * 1u << i;
        assert_int_equal(taken & ~all, 0);
        assert_int_equal(__builtin_popcount(taken), k);
        for (unsigned m = all; m; m = (m - 1) & all)
            if (__builtin_popcount(m) == k &&
                cost(islands, nodes, free, m) < cost(islands, nodes, free, taken))
                fail_msg("%d of %s, %s, %s: %s, not %#x", k, islands, nodes, free, got, m);
    }
}

/* ---- through the core ---- */

static void hello(struct world *w, const char *islands, const char *nodes,
                  const struct core_task_in *tasks, size_t tasks_n)
{
    struct core_slot_in s[8];
    size_t n = strlen(islands);
    for (size_t i = 0; i < n; i++)
        s[i] = (struct core_slot_in){.id = (int)(10 + i),
                                     .type = CORE_CUDA,
                                     .brand = "GPU",
                                     .uuid = "",
                                     .island = number(islands[i]),
                                     .numa = number(nodes[i])};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = "a"};
    ev.hello = (struct core_hello){.version = "1",
                                   .pool = "",
                                   .addr = "a",
                                   .slots = s,
                                   .slots_n = n,
                                   .tasks = tasks,
                                   .tasks_n = tasks_n};
    assert_int_equal(world_step(w, ev), 0);
}

/* The trial of each slot, '.' for none. */
static void expect_holders(const struct world *w, const char *want)
{
    struct core_slot_view v;
    struct core_alloc_view a;
    char got[9] = "";
    for (size_t i = 0; core_slot_at(w->core, "a", i, &v); i++)
        got[v.id - 10] =
            v.alloc_id && core_alloc_get(w->core, v.alloc_id, &a) ? (char)('0' + a.trial_id) : '.';
    assert_string_equal(got, want);
}

static void create(struct world *w, int slots)
{
    char config[64];
    snprintf(config, sizeof config, "{\"resources\":{\"slots_per_trial\":%d}}", slots);
    world_create(w, config);
}

static void a_gang_gets_neighbours_and_keeps_them(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, NULL);
    w.keeps = true;
    hello(&w, "ababcc", "000011", NULL, 0);
    create(&w, 2);
    expect_holders(&w, "....11");
    create(&w, 1);
    create(&w, 1);
    expect_holders(&w, "2.3.11");
    create(&w, 2);
    expect_holders(&w, "243411");
    world_run(&w, 4);
    struct core_alloc_view a;
    struct core_container_view k;
    assert_true(core_alloc_get(w.core, world_trial(&w, 4).alloc_id, &a));
    assert_true(core_alloc_container(w.core, a.id, 0, &k));
    assert_int_equal(k.slots_n, 2);
    assert_true(k.slots[0] == 11 && k.slots[1] == 13);
    world_restart(&w);
    expect_holders(&w, "243411");
    world_finish(&w);
}

static void what_a_hello_says_of_neighbours_counts_from_then_on(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, NULL);
    hello(&w, "----", "----", NULL, 0);
    create(&w, 2);
    expect_holders(&w, "11..");
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    expect_holders(&w, "....");
    hello(&w, "-a-a", "----", NULL, 0);
    create(&w, 2);
    expect_holders(&w, ".2.2");
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_taken),
        cmocka_unit_test(nothing_better_could_be_taken),
        cmocka_unit_test(a_gang_gets_neighbours_and_keeps_them),
        cmocka_unit_test(what_a_hello_says_of_neighbours_counts_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
