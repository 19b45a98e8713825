/* det: finds the noun and the verb, parses their options, runs them, prints the error. */
#include "absent.h"
#include "cli.h"
#include "near.h"
#include "plain.h"
#include "python.h"
#include "table.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct noun *const nouns[] = {
    &noun_experiment, &noun_trial,          &noun_checkpoint, &noun_store,     &noun_agent,
    &noun_slot,       &noun_user,           &noun_master,     &noun_job,       &noun_task,
    &noun_pool,       &noun_preview_search, &noun_why,        &noun_template,  &noun_workspace,
    &noun_project,    &noun_token,          &noun_group,      &noun_rbac,      &noun_tensorboard,
    &noun_auth,       &noun_model,          &noun_python,     &noun_resources, &noun_version};

static struct {
    const char *master, *user;
    bool json, csv, help, version;
} g;

static const struct opt global_opts[] = {
    {"master", 'm', OPT_STR, &g.master, "URL",
     "the master, or several with commas (default $DET_MASTER, else localhost:8080)"},
    {"user", 'u', OPT_STR, &g.user, "NAME", "run as this user (default $DET_USER)"},
    {"json", 0, OPT_FLAG, &g.json, NULL, "print the answer as JSON"},
    {"csv", 0, OPT_FLAG, &g.csv, NULL, "print tables as CSV"},
    {"help", 'h', OPT_FLAG, &g.help, NULL, "this help"},
    {"version", 'v', OPT_FLAG, &g.version, NULL, "the version of det"},
    {0},
};

static void print_options(const struct opt *opts)
{
    struct buf b = BUF_INIT;
    opt_help(opts, &b);
    fputs(buf_str(&b), stdout);
    if (b.len && b.p[b.len - 1] != '\n')
        putchar('\n');
    buf_finish(&b);
}

static void help_all(void)
{
    puts("usage: det NOUN VERB [options] [arguments]\n");
    for (size_t i = 0; i < DET_ARRAY_LEN(nouns); i++)
        printf("  %-15s %-8s %s\n", nouns[i]->name, nouns[i]->alias, nouns[i]->help);
    puts("\ndet NOUN --help lists its verbs, det NOUN VERB --help its options. For all of them:");
    print_options(global_opts);
}

static void help_noun(const struct noun *n)
{
    printf("usage: det %s VERB [options] [arguments]\n\n", n->name);
    for (const struct verb *v = n->verbs; v->name; v++)
        printf("  %-20s %-15s %s\n", v->name, v->args, v->help);
}

static void help_verb(const struct noun *n, const struct verb *v)
{
    printf("usage: det %s%s%s [options] %s\n\n%s\n", n->name, *v->name ? " " : "", v->name, v->args,
           v->help);
    if (v->opts) {
        puts("");
        print_options(v->opts);
    }
    puts("");
    print_options(global_opts);
}

/* A noun that is a command by itself, such as preview-search. */
static const struct verb *only_verb(const struct noun *n)
{
    return n->verbs[0].name && !*n->verbs[0].name ? &n->verbs[0] : NULL;
}

static const struct noun *find_noun(const char *word)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(nouns); i++)
        if (strcmp(word, nouns[i]->name) == 0 || strcmp(word, nouns[i]->alias) == 0 ||
            (nouns[i]->alias2 && strcmp(word, nouns[i]->alias2) == 0))
            return nouns[i];
    return NULL;
}

static const struct verb *find_verb(const struct noun *n, const char *word)
{
    for (const struct verb *v = n->verbs; v->name; v++)
        if (strcmp(word, v->name) == 0 || (v->alias && strcmp(word, v->alias) == 0))
            return v;
    return NULL;
}

static int fail_absent(const struct absent *a, const char *noun, const char *verb,
                       struct det_err *err)
{
    det_fail(err, DET_EINVAL, "there is no 'det %s%s%s' here: %s", noun, *verb ? " " : "", verb,
             a->answer);
    return CLI_USAGE;
}

/* A verb may be there without one of its words: `master config set`. */
static int check_absent(const struct noun *n, const struct verb *v, const struct opt_list *args,
                        struct det_err *err)
{
    if (args->n == 0)
        return 0;
    char *words det_cleanup(freep) = det_asprintf("%s %s", v->name, args->v[0]);
    const struct absent *a = absent_find(n->name, words);
    bool other = !a || strcmp(a->verb, "*") == 0; /* of the verbs that are not there */
    return other ? 0 : fail_absent(a, n->name, words, err);
}

/* "ID [NAME]" and "ID..." say how many arguments there are. */
static int check_count(const struct noun *n, const struct verb *v, size_t given,
                       struct det_err *err)
{
    const char *gap = *v->name ? " " : "";
    size_t least = 0, most = 0;
    bool optional = false, many = strstr(v->args, "...") != NULL;
    for (const char *p = v->args; *p; p += strcspn(p, " "), p += *p == ' ') {
        optional |= *p == '[';
        least += !optional;
        most++;
    }
    if (given >= least && (many || given <= most))
        return 0;
    if (most == 0)
        return det_fail(err, DET_EINVAL, "det %s%s%s takes no arguments", n->name, gap, v->name);
    return det_fail(err, DET_EINVAL, "%s: usage is  det %s%s%s %s",
                    given < least ? "an argument is missing" : "too many arguments", n->name, gap,
                    v->name, v->args);
}

/* Its own, those of all, and those that only Determined's det has; the first of a name counts. */
static const struct opt *merge_options(const struct noun *noun, const struct verb *v)
{
    const struct opt *own = v->opts;
    size_t n = 0, m = DET_ARRAY_LEN(global_opts) - 1;
    while (own && own[n].name)
        n++;
    struct opt *all = det_reallocarray(NULL, n + m + ABSENT_MAX + 1, sizeof *all);
    if (n)
        memcpy(all, own, n * sizeof *all);
    memcpy(all + n, global_opts, m * sizeof *all);
    n += m;
    n += absent_options(noun->name, v->name, all + n);
    all[n] = (struct opt){0};
    return all;
}

static int run_verb(const struct noun *n, const struct verb *v, struct cli *c, struct det_err *err)
{
    if (g.help) {
        help_verb(n, v);
        return 0;
    }
    c->master = g.master;
    c->user = g.user ? g.user : getenv("DET_USER");
    c->json = g.json;
    if (g.json && g.csv)
        return det_fail(err, DET_EINVAL, "--json and --csv: give one of them"), CLI_USAGE;
    if (g.csv)
        table_as_csv();
    if (check_absent(n, v, &c->args, err) != 0 || check_count(n, v, c->args.n, err) < 0)
        return CLI_USAGE;
    int status = v->run(c, err);
    session_destroy(c->s);
    return status;
}

/* Options before the noun belong to det itself: their end is the first word that is no option. */
static int leading_options(int argc, char **argv, struct det_err *err)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-') {
        bool takes_value = (strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--master") == 0 ||
                            strcmp(argv[i], "-u") == 0 || strcmp(argv[i], "--user") == 0);
        i += 1 + takes_value;
    }
    if (i > argc)
        i = argc;
    struct opt_list none = {0};
    int rc = opt_parse(global_opts, i, argv, 1, &none, err);
    opt_list_finish(&none);
    return rc < 0 ? rc : i;
}

/* where: "det" of a noun, "det NOUN" of a verb. */
static int report_unknown(const char *what, const char *where, const char *word, const char *near,
                          struct det_err *err)
{
    if (near)
        det_fail(err, DET_EINVAL, "'%s' is no %s of %s; did you mean '%s'?", word, what, where,
                 near);
    else
        det_fail(err, DET_EINVAL, "'%s' is no %s of %s; %s --help lists them", word, what, where,
                 where);
    return CLI_USAGE;
}

static const char *nearest_noun(const char *word)
{
    const char *names[DET_ARRAY_LEN(nouns)];
    for (size_t i = 0; i < DET_ARRAY_LEN(nouns); i++)
        names[i] = nouns[i]->name;
    return near_name(word, names, DET_ARRAY_LEN(nouns));
}

static const char *nearest_verb(const struct noun *n, const char *word)
{
    const char *names[32];
    size_t count = 0;
    for (const struct verb *v = n->verbs; v->name && count < DET_ARRAY_LEN(names); v++)
        names[count++] = v->name;
    return near_name(word, names, count);
}

/* What is said goes into JSON, which holds UTF-8 only. */
static int check_text(int argc, char **argv, struct det_err *err)
{
    for (int i = 1; i < argc; i++)
        if (!json_is_text(argv[i]))
            return det_fail(err, DET_EINVAL, "argument %d is not UTF-8: write it in a UTF-8 locale",
                            i);
    return 0;
}

static int unknown_noun(const char *noun, const char *verb, struct det_err *err)
{
    const struct absent *a = absent_find(noun, verb);
    if (!a)
        return report_unknown("noun", "det", noun, nearest_noun(noun), err);
    return fail_absent(a, noun, verb && strcmp(a->verb, "*") != 0 ? verb : "", err);
}

static int unknown_verb(const struct noun *n, const char *verb, struct det_err *err)
{
    const struct absent *a = absent_find(n->name, verb);
    char *where det_cleanup(freep) = det_asprintf("det %s", n->name);
    if (!a)
        return report_unknown("verb", where, verb, nearest_verb(n, verb), err);
    return fail_absent(a, n->name, verb, err);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static int dispatch_verb(int argc, char **argv, struct cli *c, struct det_err *err)
{
    int at = check_text(argc, argv, err);
    if (at == 0)
        at = leading_options(argc, argv, err);
    if (at < 0)
        return CLI_USAGE;
    if (g.version) {
        puts("det " DET_VERSION);
        return 0;
    }
    if (at >= argc || strcmp(argv[at], "help") == 0) {
        help_all();
        return at >= argc && !g.help ? CLI_USAGE : 0;
    }
    const struct noun *n = find_noun(argv[at]);
    if (!n)
        return unknown_noun(argv[at], at + 1 < argc ? argv[at + 1] : NULL, err);
    if (n == &noun_python)
        return python_become(argv + at, err);
    bool is_whole = only_verb(n) && !*only_verb(n)->args; /* no word need follow it */
    if (at + 1 < argc ? asks_for_help(argv[at + 1]) : !is_whole) {
        if (only_verb(n))
            help_verb(n, only_verb(n));
        else
            help_noun(n);
        return at + 1 >= argc ? CLI_USAGE : 0;
    }
    const struct verb *v = only_verb(n);
    if (!v)
        v = find_verb(n, argv[++at]);
    if (!v)
        return unknown_verb(n, argv[at], err);
    const struct opt *opts = merge_options(n, v);
    int rc = opt_parse(opts, argc, argv, at + 1, &c->args, err);
    int status = rc < 0 ? CLI_USAGE : run_verb(n, v, c, err);
    free((void *)opts);
    opt_list_finish(&c->args);
    return status;
}

int main(int argc, char **argv)
{
    struct cli c = {0};
    struct det_err err = {0};
    signal(SIGPIPE, SIG_DFL); /* `det ... | head` ends quietly */
    int status = dispatch_verb(argc, argv, &c, &err);
    if (status != 0 && err.text[0])
        plain_say("det: ", err.text);
    return status;
}
