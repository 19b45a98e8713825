/*
 * Runs a fuzz target without libFuzzer: every file of a corpus, then mutants of them from a seed,
 * so that the suites run it briefly under ASan + UBSan with any compiler.
 *
 *     fuzz_x CORPUS_DIR [MUTANTS [SEED]]      a failure leaves the input in ./crash-input
 *     fuzz_x FILE                             replays one input
 *
 * Without a seed, here or in FUZZ_SEED, each run takes another one and prints it first.
 */
#include "clk.h"
#include "rng.h"
#include "vec.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1 << 20)

struct input {
    uint8_t *p;
    size_t n;
};
static VEC(struct input) corpus;
static struct input current; /* what runs now: written out when it crashes */

static void load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    struct input in = {det_alloc(INPUT_MAX), 0};
    in.n = fread(in.p, 1, INPUT_MAX, f);
    fclose(f);
    vec_push(&corpus, in);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load_dir(const char *dir)
{
    VEC(char *) names = {0};
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            vec_push(&names, det_asprintf("%s/%s", dir, e->d_name));
    if (d)
        closedir(d);
    if (names.n)
        qsort(names.v, names.n, sizeof *names.v, by_name);
    for (size_t i = 0; i < names.n; i++) {
        load(names.v[i]);
        free(names.v[i]);
    }
    vec_free(&names);
}

static void on_crash(int sig)
{
    FILE *f = fopen("crash-input", "wb");
    if (f) {
        fwrite(current.p, 1, current.n, f);
        fclose(f);
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

/* One change of a random kind, in place or by a piece of another input. */
static void mutate(struct input *in, struct mt19937 *r)
{
    const struct input *other = &corpus.v[mt19937_bounded(r, corpus.n - 1)];
    size_t at = in->n ? mt19937_bounded(r, in->n - 1) : 0;
    size_t len = 1 + mt19937_bounded(r, 15);
    switch (mt19937_bounded(r, 4)) {
    case 0:
        if (in->n)
            in->p[at] ^= (uint8_t)(1u << mt19937_bounded(r, 7));
        break;
    case 1:
        if (in->n)
            in->p[at] = (uint8_t)mt19937_u32(r);
        break;
    case 2: /* cut */ in->n = at; break;
    case 3: /* take out */
        if (at + len < in->n) {
            memmove(in->p + at, in->p + at + len, in->n - at - len);
            in->n -= len;
        }
        break;
    default: /* put in a piece of another */
        if (other->n) {
            size_t from = mt19937_bounded(r, other->n - 1);
            len = len * 4 > other->n - from ? other->n - from : len * 4;
            if (in->n + len <= INPUT_MAX) {
                memmove(in->p + at + len, in->p + at, in->n - at);
                memcpy(in->p + at, other->p + from, len);
                in->n += len;
            }
        }
    }
}

static void run(const struct input *in)
{
    /* an exact-size copy, so that a read past the end is seen */
    uint8_t *copy = det_alloc(in->n ? in->n : 1);
    memcpy(copy, in->p, in->n);
    current = (struct input){copy, in->n};
    LLVMFuzzerTestOneInput(copy, in->n);
    free(copy);
}

/* The argument, else the environment, else the time: each run tries other mutants. */
static uint32_t choose_seed(const char *argument)
{
    const char *text = argument ? argument : getenv("FUZZ_SEED");
    if (!text)
        return (uint32_t)clk_wall_us();
    char *end;
    errno = 0;
    unsigned long seed = strtoul(text, &end, 10);
    if (!*text || *end || errno || seed > UINT32_MAX) {
        fprintf(stderr, "seed \"%s\": expected a number from 0 to %" PRIu32 "\n", text, UINT32_MAX);
        exit(2);
    }
    return (uint32_t)seed;
}

/* The corpus is read by now, so it is not empty. */
static void run_mutants(long n, uint32_t seed)
{
    struct mt19937 r;
    mt19937_seed(&r, seed);
    struct input work = {det_alloc(INPUT_MAX), 0};
    for (long k = 0; k < n; k++) {
        const struct input *base = &corpus.v[mt19937_bounded(&r, corpus.n - 1)];
        memcpy(work.p, base->p, base->n);
        work.n = base->n;
        for (uint64_t changes = 1 + mt19937_bounded(&r, 7); changes--;)
            mutate(&work, &r);
        run(&work);
    }
    free(work.p);
}

int main(int argc, char **argv)
{
    struct stat st;
    if (argc < 2 || stat(argv[1], &st) < 0) {
        fprintf(stderr, "usage: [FUZZ_SEED=N] %s CORPUS_DIR|FILE [MUTANTS [SEED]]\n", argv[0]);
        return 2;
    }
    S_ISDIR(st.st_mode) ? load_dir(argv[1]) : load(argv[1]);
    long mutants = argc > 2 && S_ISDIR(st.st_mode) ? strtol(argv[2], NULL, 10) : 0;
    if (!corpus.n) {
        fprintf(stderr, "%s: holds no input to begin with\n", argv[1]);
        return 2;
    }
    uint32_t seed = mutants ? choose_seed(argc > 3 ? argv[3] : NULL) : 0;
    if (mutants) /* before anything can crash */
        fprintf(stderr, "%s: again with FUZZ_SEED=%" PRIu32 "\n", argv[0], seed);
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    for (size_t i = 0; i < corpus.n; i++)
        run(&corpus.v[i]);
    run_mutants(mutants, seed);
    printf("%zu inputs, %ld mutants\n", corpus.n, mutants);
    for (size_t i = 0; i < corpus.n; i++)
        free(corpus.v[i].p);
    vec_free(&corpus);
    return 0;
}
